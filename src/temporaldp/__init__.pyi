from . import accounting as accounting
from . import adapters as adapters
from . import correlated_noise as correlated_noise
from . import correlation as correlation
from . import counts as counts
from . import deployment as deployment
from . import errors as errors
from . import kernels as kernels
from . import mechanisms as mechanisms
from . import planning as planning
from . import release as release
from . import smoothing as smoothing
from . import studies as studies
from .accounting import (
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
from .correlated_noise import (
    MatrixMechanism as MatrixMechanism,
    Windows as Windows,
    event_epsilons as event_epsilons,
)
from .correlation import (
    Adversary as Adversary,
    IntervalMatrix as IntervalMatrix,
    Periodic as Periodic,
    Trajectories as Trajectories,
    TransitionMatrix as TransitionMatrix,
    estimate_adversaries as estimate_adversaries,
    estimate_adversary as estimate_adversary,
    estimate_periodic as estimate_periodic,
    sticky as sticky,
)
from .counts import (
    DiscreteLaplaceHistogram as DiscreteLaplaceHistogram,
    ReleasedHistograms as ReleasedHistograms,
    SmoothedHistograms as SmoothedHistograms,
    load_released as load_released,
    save_released as save_released,
    smooth as smooth,
)
from .errors import (
    BudgetError as BudgetError,
    InputError as InputError,
    LeakageBudgetError as LeakageBudgetError,
    LedgerError as LedgerError,
    PlanError as PlanError,
    TemporaldpError as TemporaldpError,
)
from .files import (
    load_correlation as load_correlation,
    load_matrix as load_matrix,
    load_plan as load_plan,
    load_sample as load_sample,
    read_counts as read_counts,
    read_traces as read_traces,
    save_correlation as save_correlation,
    save_matrix as save_matrix,
    save_plan as save_plan,
)
from .mechanisms import (
    DiscreteGaussianNoise as DiscreteGaussianNoise,
    DiscreteLaplaceNoise as DiscreteLaplaceNoise,
    GaussianNoise as GaussianNoise,
    LaplaceNoise as LaplaceNoise,
    LikelihoodBox as LikelihoodBox,
    OutputTable as OutputTable,
    PrivacyGuarantee as PrivacyGuarantee,
    RandomizedResponse as RandomizedResponse,
)
from .planning import (
    BudgetPlan as BudgetPlan,
    NoisePlan as NoisePlan,
    compare_plans as compare_plans,
    plan_budget as plan_budget,
    plan_noise as plan_noise,
    replan as replan,
    sustainable_budget as sustainable_budget,
)
from .project import (
    Project as Project,
)
from .release import (
    ContinualRelease as ContinualRelease,
    Ledger as Ledger,
    learn_correlation as learn_correlation,
    release_histograms as release_histograms,
)
from .smoothing import (
    PublicCorrelation as PublicCorrelation,
    tradeoff as tradeoff,
)

__version__: str
