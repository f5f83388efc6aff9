from .base import errors as errors
from .base.errors import (
    BudgetError as BudgetError,
    InputError as InputError,
    LeakageBudgetError as LeakageBudgetError,
    LedgerError as LedgerError,
    PlanError as PlanError,
    TemporaldpError as TemporaldpError,
)
from .core import accounting as accounting
from .core import correlation as correlation
from .core import kernels as kernels
from .core import mechanisms as mechanisms
from .core import planning as planning
from .core.accounting import (
    ApproximateDP as ApproximateDP,
    Exact as Exact,
    LeakageSeries as LeakageSeries,
    LeakageSupremum as LeakageSupremum,
    MetricPrivacy as MetricPrivacy,
    PaperBound as PaperBound,
    TemporalAccountant as TemporalAccountant,
    leakage_supremum as leakage_supremum,
    temporal_leakage as temporal_leakage,
)
from .core.correlation import (
    Adversary as Adversary,
    IntervalMatrix as IntervalMatrix,
    Periodic as Periodic,
    TransitionMatrix as TransitionMatrix,
    sticky as sticky,
)
from .core.mechanisms import (
    DiscreteGaussianNoise as DiscreteGaussianNoise,
    DiscreteLaplaceNoise as DiscreteLaplaceNoise,
    GaussianNoise as GaussianNoise,
    LaplaceNoise as LaplaceNoise,
    LikelihoodBox as LikelihoodBox,
    Mechanism as Mechanism,
    OutputTable as OutputTable,
    PrivacyGuarantee as PrivacyGuarantee,
    RandomizedResponse as RandomizedResponse,
)
from .core.planning import (
    BudgetPlan as BudgetPlan,
    NoisePlan as NoisePlan,
    compare_plans as compare_plans,
    plan_budget as plan_budget,
    plan_guarantee as plan_guarantee,
    plan_noise as plan_noise,
    refresh_interval as refresh_interval,
    replan as replan,
    sustainable_budget as sustainable_budget,
)
from .data import counts as counts
from .data import smoothing as smoothing
from .data import tables as tables
from .data.counts import (
    DiscreteLaplaceHistogram as DiscreteLaplaceHistogram,
    ReleasedHistograms as ReleasedHistograms,
    SmoothedHistograms as SmoothedHistograms,
    load_released as load_released,
    save_released as save_released,
    smooth as smooth,
)
from .data.files import (
    load_correlation as load_correlation,
    load_leakage as load_leakage,
    load_matrix as load_matrix,
    load_plan as load_plan,
    load_sample as load_sample,
    sample_commuters as sample_commuters,
    read_counts as read_counts,
    read_traces as read_traces,
    save_correlation as save_correlation,
    save_leakage as save_leakage,
    save_matrix as save_matrix,
    save_plan as save_plan,
)
from .data.smoothing import (
    PublicCorrelation as PublicCorrelation,
    compare_guarantees as compare_guarantees,
    level_for_error as level_for_error,
)
from .data.tables import (
    Trajectories as Trajectories,
    estimate_adversaries as estimate_adversaries,
    estimate_adversary as estimate_adversary,
    estimate_models as estimate_models,
    estimate_periodic as estimate_periodic,
)
from .lab import adapters as adapters
from .lab import correlated_noise as correlated_noise
from .lab import studies as studies
from .lab.correlated_noise import (
    MatrixMechanism as MatrixMechanism,
    Windows as Windows,
    event_epsilons as event_epsilons,
)
from .publish import deployment as deployment
from .publish import release as release
from .publish.project import (
    Project as Project,
)
from .publish.release import (
    ContinualRelease as ContinualRelease,
    Ledger as Ledger,
    learn_correlation as learn_correlation,
    release_histograms as release_histograms,
)

__version__: str
