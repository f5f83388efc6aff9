"""Numbers and sentences that the report, the card, the command line and the page share; each fact is worded once.

Upper bounds are rounded up to four digits (between 1 and 10 to four decimals) and what may be spent is rounded down; other
numbers are rounded to the nearest.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from temporaldp.base.display import interval, number, spread
from temporaldp.base.errors import InputError
from temporaldp.base.values import plural, sum_up
from temporaldp.core.accounting import ApproximateDP
from temporaldp.core.correlation.provenance import UNSTATED
from temporaldp.core.planning import Guarantee
from temporaldp.core.planning.every_correlation import leakage_together
from temporaldp.core.planning.histogram_noise import histogram_profile, mean_absolute_noise
from temporaldp.data.tables.models import ANOTHER_SAMPLE, LONGER_MEMORY
from temporaldp.data.tables.moments import STEP_LENGTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from temporaldp.core.accounting import Accounting, LeakageSeries, LeakageSupremum
    from temporaldp.core.accounting.curve.evidence import Guesses
    from temporaldp.core.accounting.protocol import Direction
    from temporaldp.core.correlation import Provenance
    from temporaldp.core.correlation.provenance import Kind
    from temporaldp.data.counts import ReleasedHistograms, SmoothedHistograms
    from temporaldp.publish.release.renewal import Renewal

NO_EFFORT = "--effort (privacy.effort) limits the exact leakage, with delta = 0: leave it out, or --delta"
USER_LEVEL = "user level (all steps of a person)"
INFINITE_HORIZON = "supremum over an infinite horizon"
PAPER_BOUND = "the paper's upper bound"
NO_HABITS = "an observer who knows nothing about how people move from step to step"
EVERY_CORRELATION = "every observer and every correlation"
CHAINS: dict[Kind, str] = {
    "stated": "any first-order chain of the stated range",
    "matrices": "first order, by the given matrices",
    "estimated": "any first-order chain within the estimated bounds",
    "history": "first order",
    "protected": "first order",
    "learnt": "any first-order chain within the learned bounds",
}
"""The model that observers know, by the source of the correlation."""

PREDICTABLE = "the most predictable 5 % of people, by their own habits"
ADVERSARY = "The adversary knows the states of all other people at every step, and the correlation"
STRONGER_MODEL = "A stronger model (longer memory, correlation between people) can leak more."
AUTHENTIC = "yes: the head was written with the key of this machine"
NOT_AUTHENTIC = (
    "unknown: an entry was written without the key of this machine; a chain made anew differs in the heads noted before. Once "
    "it was compared with one, --sign authenticates it"
)
NOT_SUSTAINABLE = "no budget is sustainable under this correlation: later steps are refused (exit code 3)"
NOISE_FIXED = "The amount of noise of every release is fixed before the first release."
OWN_STATES = "the list of states was taken from the protected table, outside of the guarantee"
LIST_STATES = "give the public list (--set traces.states=A,B,C)"
INFERENCE_ONLY = (
    "The numbers bound what can be inferred about a person's states under an assumed correlation. They do not show that the "
    "differential privacy of the deployment is broken: its guarantee for its privacy unit stands."
)
UNKNOWN_FIT = (
    "The record does not show whether a chain of this kind fits the people in these data: the range of chains and the secret "
    "are assumptions."
)


def upper(leakage: float) -> str:
    """An upper bound, rounded up; "without bound" where it is infinite."""
    return "without bound" if math.isinf(leakage) else number(leakage, up=True)


def nats(leakage: float) -> str:
    """An upper bound with its unit."""
    return upper(leakage) if math.isinf(leakage) else plural(upper(leakage), "nat")


def steps(count: int) -> str:
    """1 step, 2 steps."""
    return plural(count, "step")


def duration(step: str | None) -> str | None:
    """The length of a step by the clock in its largest unit: 15 minutes for 900 seconds."""
    known = None if step is None else STEP_LENGTH.fullmatch(step)
    for unit, length in (("day", 86_400.0), ("hour", 3_600.0), ("minute", 60.0)):
        if known is not None and known[2] == "seconds" and float(known[1]) % length == 0.0:
            return plural(int(float(known[1]) / length), unit)
    return step


def at_delta(delta: float) -> str:
    """Qualification of a number, such as at delta 1e-06; empty for pure differential privacy."""
    return f" at delta {delta:g}" if delta else ""


def probability(value: float) -> str:
    """A probability to the nearest tenth of a per cent: 85.2 %."""
    if 0.0 < value < 0.001:
        return "less than 0.1 %"
    return "more than 99.9 %" if 0.999 < value < 1.0 else f"{100.0 * value:.1f} %"


def percent(value: float) -> str:
    """An upper bound of a probability, to a tenth of a per cent, or as its distance from certainty requires."""
    left = 1.0 - value
    if left < 1e-9:
        return "100 %"
    digits = max(1, math.ceil(-math.log10(left)) - 1)
    scale = 10.0**digits
    shown = f"{math.ceil(100.0 * value * scale - 1e-9) / scale:.{digits}f}"
    return f"{shown.rstrip('0').rstrip('.')} %"


def factor(leakage: float) -> str:
    """The factor by which odds change, rounded up."""
    if math.isinf(leakage):
        return "without bound"
    if leakage >= 13.0:
        return f"10^{math.ceil(10.0 * leakage / math.log(10.0)) / 10.0:g}"
    times = math.exp(leakage)
    return number(times, up=True) if times < 1e4 else f"{10 * math.ceil(times / 10.0 - 1e-9):,}"


def posterior(prior: float, leakage: float) -> float:
    """Largest posterior probability of one of two states, if odds change by at most ``e^leakage``."""
    return 1.0 / (1.0 + (1.0 - prior) / prior * math.exp(-leakage))


def odds(leakage: float, delta: float) -> str:
    """Effect of a leakage on the odds between two states, as a clause."""
    times = factor(leakage)
    if delta:
        return (
            f"any set of outputs is at most {times} times as likely under one state as under another, plus a probability of "
            f"{delta:g}"
        )
    return f"the releases change the odds between two states by at most a factor of {times}"


def best_guess(leakage: float, delta: float) -> float:
    """Largest probability that a guess between two equally likely states is correct."""
    return (math.exp(-leakage) * delta + 1.0) / (1.0 + math.exp(-leakage))


def guarantee_sentences(
    leakage: float,
    delta: float,
    condition: str,
    user_level: float,
    *,
    moment: str = "at one step",
    span: str = "in these steps",
    guarantee: Guarantee | None = None,
    guesses: Guesses | None = None,
) -> tuple[str, str]:
    """The guarantee in use, by default about one step, and that at the user level: each with odds, number and condition.

    `guesses` are the largest probabilities of right guesses, where privacy curves are known, from which they follow.
    """
    _, about_one, about_all = guesses or (1.0, 1.0, 1.0)
    if guarantee is None or guarantee.is_temporal:
        about_step = _guarantee(leakage, delta, f"one person's state {moment}", condition, about_one)
    else:
        known = about_all if guarantee == Guarantee("user") else 1.0
        about_step = _guarantee(leakage, delta, guarantee.wording.protects, guarantee.wording.condition, known)
    everything = f"all states of one person {span} together"
    return about_step, _guarantee(user_level, delta, everything, EVERY_CORRELATION, about_all)


def _guarantee(leakage: float, delta: float, about: str, condition: str, known: float) -> str:
    """One guarantee; for a delta, by the best guess between two equally likely alternatives, at most `known`."""
    if math.isinf(leakage):
        return f"What the releases reveal about {about} is not known to be bounded, for {condition}."
    most = f"{percent(min(known, best_guess(leakage, delta)))}: {nats(leakage)}{at_delta(delta)}, for {condition}."
    if delta:
        return f"A guess about {about}, between two equally likely alternatives, is correct with probability at most {most}"
    return f"A suspicion of 50 % about {about} becomes at most {most}"


def posteriors(leakage: float, delta: float) -> str:
    """Effect of a leakage on posterior probabilities, or at a delta on the best guess between two states."""
    if delta:
        right = best_guess(leakage, delta)
        if 1.0 - right < 1e-9:
            return "Certainty is not excluded: a guess between two equally likely states may always be correct."
        return f"A guess between two equally likely states is correct with probability at most {percent(right)}."
    half, tenth = (percent(posterior(prior, leakage)) for prior in (0.5, 0.1))
    increases = f"from 50 % to at most {half} and from 10 % to at most {tenth}"
    return f"The probability that an adversary assigns to one of two states increases {increases}."


def satisfied(alpha: float, delta: float = 0.0) -> str:
    """The level as a property of a release: 1-DP_T, or (1, 1e-06)-DP_T."""
    return f"({_level(alpha)}, {delta:g})-DP_T" if delta else f"{_level(alpha)}-DP_T"


def _level(alpha: float) -> str:
    return f"{alpha:g}" if float(f"{alpha:g}") >= alpha else number(alpha, up=True)


def chain(known: Provenance) -> str:
    """The models that observers know, and in which direction of time, if only in one."""
    return _models(known) + (f", {known.only} only" if known.only else "")


def _models(known: Provenance) -> str:
    if known.models:
        names = dict.fromkeys(name.partition(ANOTHER_SAMPLE)[0] for name in known.models)
        return re.sub(r" (0?\.\d+)\b", lambda found: f" at {100.0 * float(found[1]):g} %", ", ".join(names))
    if known.confidence:
        return f"{CHAINS['estimated']}, {100.0 * known.confidence:g} % confidence"
    if known.clock is not None:
        return "first order, by the time of day"
    return CHAINS[known.source] + (", of each person" if known.per_user else "")


def observers(known: Provenance) -> str:
    """For whom the temporal level holds: observers who know these models of how people move."""
    if not (known.models or known.sentence):
        return f"observers who know the correlation{f' ({known.only} only)' if known.only else ''}"
    although = f", although a test of the history prefers {' and '.join(known.left_out)}" if known.left_out else ""
    return f"observers who know how these people move from step to step ({chain(known)}{although})"


def guarantee_line(alpha: float, delta: float, guarantee: Guarantee | None = None, known: Provenance = UNSTATED) -> str:
    """The guarantee of a release in one line, by default the temporal level; with its condition, the correlation `known`."""
    most = f"at most {plural(_level(alpha), 'nat')}{at_delta(delta)}"
    if guarantee is None or guarantee.is_temporal:
        return f"{most} about any step ({satisfied(alpha, delta)}), for {observers(known)}"
    return f"{most} about {guarantee.wording.protects} ({guarantee.wording.label}), for {guarantee.wording.condition}"


def guarantee_with_odds(
    released: ReleasedHistograms, known: Provenance, learnt: Provenance, *, is_part: bool = False
) -> str:
    """The guarantee of a published table, and what it means for a guess; `is_part` of an account with other tables.

    `known` is of the level; `learnt` also of the estimates, which reveal what was learned for them.
    """
    if released.alpha is None:
        return "not stated in the settings."
    line = guarantee_line(released.alpha, released.delta, released.guarantee, known)
    most, kept = percent(best_guess(released.alpha, released.delta)), released.guarantee
    about = "one person's state at one step" if kept.is_temporal else kept.wording.protects.partition(",")[0]
    guess = (
        f"A guess about {about}, between two equally likely alternatives, is correct with probability"
        if released.delta
        else f"A suspicion of 50 % about {about} becomes"
    )
    found = f"{line}. {guess} at most {most}."
    also = " and the learned correlation" if learnt.spends else ""
    together = _of_all_states(released) if kept.is_temporal and not is_part else math.inf
    if math.isinf(together):
        return found
    everything, delta = learnt.in_all(together, released.delta)
    of_all = f"{nats(everything)}{at_delta(delta)}"
    return f"{found} All states of a person in these tables{also}: at most {of_all}, for {EVERY_CORRELATION}."


def _of_all_states(released: ReleasedHistograms) -> float:
    """Leakage of all tables together about all states of a person, in nats: an upper bound, by the least noise of any table.

    inf where it exceeds the grid of privacy losses.
    """
    if not released.delta:
        return sum_up(released.epsilons)
    most = histogram_profile(released.noise, float(released.scales.min()))
    try:
        return leakage_together((most,), len(released.times), ApproximateDP(released.delta))
    except InputError:
        return math.inf


def typical_error(half_width: float, noise: float | None) -> float:
    """The mean absolute error of an estimate with a normal distribution, from its 95 % interval; at most `noise`, if known."""
    error = 0.8 / 1.96 * half_width
    return error if noise is None else min(error, noise)


def even_split(noise: float, of_user_level: float) -> str | None:
    """Warning where equal noise at the user level, which holds for every correlation, is less; None elsewhere."""
    if of_user_level >= noise * (1.0 - 1e-6):  # plans leave up to 1e-7 of alpha unused
        return None
    return (
        "the user level, which protects all states of a person together for every correlation, has less noise at the same "
        f"level: {number(of_user_level)} people on a count, compared with {number(noise)}. Take it (privacy.guarantee=user) or "
        "the least noise of the temporal level (plan.method=optimal)"
    )


def published_text(
    released: ReleasedHistograms,
    made: SmoothedHistograms | None,
    known: Provenance,
    n_people: int,
    file: str,
    source: Provenance = UNSTATED,
    *,
    warnings: Sequence[str] = (),
    on_grid: bool = False,
    is_part: bool = False,
    present: tuple[int, int] | None = None,
) -> str:
    """A text beside a published table: what its columns mean, and what not to conclude (Markdown).

    `made` are the estimates of the last run, `known` is the provenance of all that is public about correlations, `source` that
    of the correlation for which the level holds; `warnings` are what to know before publishing; `on_grid`, times
    are those of a grid of events; `is_part`, an account has other tables, too;
    `present` are the people who are not absent, and the number of their states.
    """
    n_present, n_states = present or (n_people, len(released.states))
    average = n_present / n_states
    noise, drawn = mean_absolute_noise(released.scales, released.noise), released.drawn
    gaps = (
        ""
        if drawn.all()
        else f" Counts were drawn at {drawn.sum()} of these times; the others are estimated from them."
    )

    def compared(people: float) -> str:
        return f"{number(people)} people ({number(100.0 * people / average)} % of an average count)"

    estimated: list[str] = []
    if released.estimates is not None and made is not None:
        width = released.estimates.half_width
        estimated = [
            "- `estimate`: read this. The estimated number of people, at least 0. At each time, the estimates of all states "
            "add up to the number of people at that time, which is taken to be public: the guarantee does not protect it.",
            "- `low`, `high`: the true number lies between them in about 95 of 100 rows (89 to 100 in simulations). "
            f"Typically they are {compared(width)} from the estimate, whose own error is about "
            f"{compared(typical_error(width, noise))}.",
        ]
    how = "" if not estimated or made is None else f"What estimates are made from: {made.used} {made.fit}".rstrip()
    learnt = ""
    if known.spends and released.alpha is not None:
        cost = learning_cost(known.epsilon, *known.in_all(released.alpha, released.delta))
        learnt = f" Learning the correlation cost {cost}."
    last = len(released.times) - 1
    return "\n".join(
        [
            f"# {file}",
            "",
            f"Numbers of people in {len(released.states)} states at {plural(last + 1, 'time')}, from {released.times[0]} to "
            f"{released.times[last]}; {n_people} people at a time"
            f"{'' if n_present == n_people else f', of whom about {n_present} are not absent'}, so {number(average)} per "
            f"state, on average.{gaps}",
            *(
                ["Each time is a moment: what happened until then counts for it. A date is its first moment, 0:00."]
                if on_grid
                else []
            ),
            "",
            *estimated,
            "- `noisy`: the true number plus random noise; it may be negative"
            f"{' (empty where none was drawn)' if gaps else ''}. All other columns follow from it and from public numbers.",
            f"- `scale`: of that noise, {spread(released.scales[drawn], digits=4)} people; on average, its size is "
            f"{compared(noise)}. `epsilon`: what the counts of one time spend by themselves, in nats; the guarantee is below"
            f"{', at `delta`; `noise`: its kind' if released.delta else ''}.",
            "",
            *([how, ""] if how else []),
            f"Guarantee: {guarantee_with_odds(released, source, known, is_part=is_part)}{learnt}",
            *(line for one in warnings for line in ("", f"Warning: {one[:1].upper()}{one[1:]}")),
            "",
            "Do not conclude:",
            "",
            "- that a difference smaller than the intervals is a change;",
            *(
                ["- that nothing happened between two draws: estimates there follow from how people usually move;"]
                if gaps
                else []
            ),
            *(
                ["- that no more can be learned than the guarantee states: observers who know more can learn more;"]
                if released.guarantee.is_temporal
                else []
            ),
            *(["- anything from `noisy` where `estimate` will do;"] if estimated else []),
            "- that a small count is about certain people, or that a count of 0 means no person.",
            "",
        ]
    )


def when_renewed(renewal: Renewal) -> str:
    """How often a level is renewed, and by which clock."""
    if renewal.every == "steps":
        return f"every {steps(renewal.n_steps)}"
    clock = f"of {renewal.timezone}" if renewal.timezone else "that the published times are written with"
    return f"{renewal.every}, by the clock {clock}"


def renewed_line(renewal: Renewal) -> str:
    """A renewed level in one line."""
    alone, together = satisfied(renewal.alpha), satisfied(float(number(renewal.promise, up=True)))
    return f"{when_renewed(renewal)}; each epoch satisfies {alone} by itself, all epochs together satisfy {together}"


def sustainable(budget: float) -> tuple[str, str]:
    """A sustainable budget as a row of a table: its name, and the budget rounded down."""
    return "sustainable budget", f"{number(budget, down=True)} nats at every step"


def accounting_line(method: Accounting[Any, Any], known: Provenance = UNSTATED) -> str:
    """Kind of the numbers of an accounting method for a correlation, and the method's name if they are upper bounds."""
    if any(name.startswith(LONGER_MEMORY) for name in known.models):  # `Exact` stands for a bound there
        return "upper bound (accounting method: longer memory)"
    return method.label + ("" if method.is_exact else f" (accounting method: {method.name})")


def learning_cost(spent: float, in_all: float, delta: float) -> str:
    """The cost of a correlation that was learned with differential privacy, and the total with the release."""
    total = nats(in_all) + at_delta(float(number(delta, up=True)))
    return f"{nats(spent)} for all states of a person together; with the release, {total} in all"


def supremum(limits: LeakageSupremum, direction: Direction = "temporal") -> str:
    """A supremum; an interval or "at most" where it is not proved to be the least bound."""
    high, low = float(getattr(limits, direction)), limits.attained(direction)
    if low is None and not limits.certified and math.isfinite(high):
        return "at most " + upper(high)
    known = high if limits.certified else 0.0
    return between(known if low is None else low, high, limits.accounting.effort)


def between(low: float, high: float, effort: float) -> str:
    """An upper bound, with the lower one where the search between them ended; in words where there is none."""
    if math.isinf(high):
        return "without bound" if math.isinf(low) else "not known to be bounded"
    return interval(low, high, effort)


def ended(*found: LeakageSeries | LeakageSupremum | None) -> str | None:
    """Sentence about intervals, where some of these results is one."""
    if all(one is None or one.label == one.accounting.label for one in found):
        return None
    return (
        "Not all pairs of states were compared: some observation attains the lower side of an interval, and none exceeds the "
        "upper side, which tables show, and which plans and filters use."
    )


def discrete_noise(name: str) -> str:
    """The noise of a histogram."""
    return f"exact discrete {name.capitalize()} noise (OpenDP)"


@dataclass(frozen=True, slots=True)
class NoiseBesideCounts:
    """The mean absolute noise of a count beside the average count; both are public.

    Parameters
    ----------
    noise : float
        In people.
    n_people, n_states : int
    """

    noise: float
    n_people: int
    n_states: int

    @property
    def average(self) -> float:
        """The average count, in people."""
        return self.n_people / self.n_states

    @property
    def share(self) -> float:
        """The noise as a share of the average count."""
        return self.noise / self.average

    @property
    def sentence(self) -> str:
        """Sentence with the noise and the typical count."""
        return (
            f"{number(self.noise)}, compared with {number(self.average)} people per state on average ({self.n_people} people, "
            f"{self.n_states} states); the noise is {number(100.0 * self.share)} % of an average count"
        )

    @property
    def warning(self) -> str | None:
        """A warning if the noise exceeds half of an average count; None otherwise."""
        if self.share <= 0.5:
            return None
        return (
            f"the noise is more than {'' if self.share > 1.0 else 'half of '}an average count: {self.sentence}. A single count "
            "carries little information: read the estimates, compare guarantees (`temporaldp plan`), or count fewer states"
        )
