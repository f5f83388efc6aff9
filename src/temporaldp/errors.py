"""Every error that temporaldp raises on purpose.

::

    TemporaldpError
    ├── InputError (ValueError)            a value that cannot be used as given
    │   ├── MatrixError                    a matrix that is not a transition matrix
    │   ├── StateError                     state names that are missing, repeated, unknown or do not match
    │   ├── BudgetError                    an epsilon, alpha or horizon that is not admissible
    │   │   └── SpentError                 a refused step: the plan, the horizon or the sustainable budget is used up
    │   ├── LateDataError                  a step held back: its time comes before one that was released
    │   ├── TraceError                     traces that cannot be read as one state per user and time
    │   └── EstimationError                a correlation that the traces do not determine
    ├── PlanError (ValueError)             no budget of the asked kind holds the asked level
    ├── LeakageBudgetError (ValueError)    a spend that an accountant refuses: it would break the level
    ├── MissingExtraError (ImportError)    a library that only a part of the package needs, and that is not installed
    ├── MissingFileError (FileNotFoundError)
    ├── ServiceError (OSError)             a service that did not answer
    ├── RequestRefusedError (ValueError)   a request that a service refused
    ├── OutputError (OSError)              an output that could not be written; nothing was left half-written
    └── LedgerError (OSError)              a ledger that cannot be read, written or trusted
        ├── LedgerMismatchError (ValueError)   a ledger that was made for something else
        └── LedgerChangedError             a ledger that was edited, cut off or exchanged after it was written

Each class also derives from the builtin that a caller would expect, so ``except ValueError`` works.
"""

from typing import Any

__all__ = [
    "BudgetError",
    "EstimationError",
    "InputDiffersWarning",
    "InputError",
    "LateDataError",
    "LeakageBudgetError",
    "LedgerChangedError",
    "LedgerError",
    "LedgerMismatchError",
    "MatrixError",
    "MissingExtraError",
    "MissingFileError",
    "OutputError",
    "PlanError",
    "RequestRefusedError",
    "ServiceError",
    "SpentError",
    "StateError",
    "TemporaldpError",
    "TraceError",
]


class TemporaldpError(Exception):
    """Base of all errors that temporaldp raises on purpose."""


class InputError(TemporaldpError, ValueError):
    """A value that cannot be used as given."""


class MatrixError(InputError):
    """A matrix that is not a transition matrix: shape, sign, finiteness or row sums."""


class StateError(InputError):
    """State names that are missing, repeated, unknown, or do not match."""


class BudgetError(InputError):
    """An epsilon, alpha, horizon or number of steps that is not admissible."""


class SpentError(BudgetError):
    """A step is refused: the plan, the horizon or the sustainable budget is used up. Nothing was drawn."""


class LateDataError(InputError):
    """A step that is held back: its time comes before one that was released already. Nothing was drawn."""


class TraceError(InputError):
    """Traces that cannot be read as at most one state per user and time."""


class EstimationError(InputError):
    """A correlation that the traces do not determine."""


class PlanError(TemporaldpError, ValueError):
    """No budget of the asked kind holds the asked level."""


class LeakageBudgetError(TemporaldpError, ValueError):
    """A spend that would push temporal privacy leakage above the level; nothing was spent.

    Parameters
    ----------
    message : str
    requested : float
        The epsilon that was asked for, in nats.
    largest : float
        The largest epsilon that would be admitted in its place; 0 if none.
    worst_time : int
        Index (from 0) of the step that would be leaked about most.
    leakage : float
        Temporal privacy leakage at that step if the spend were admitted, with what is reserved for later steps.
    alpha : float
        The level.
    user : str or None
        Whose leakage it is, where users have names.
    """

    def __init__(
        self,
        message: str,
        *,
        requested: float,
        largest: float,
        worst_time: int,
        leakage: float,
        alpha: float,
        user: str | None = None,
    ) -> None:
        super().__init__(message)
        self.requested, self.largest = requested, largest
        self.worst_time, self.leakage, self.alpha, self.user = worst_time, leakage, alpha, user

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled whole: errors cross process boundaries."""
        fields = ("requested", "largest", "worst_time", "leakage", "alpha", "user")
        return _leakage_budget_error, (str(self), {field: getattr(self, field) for field in fields})


def _leakage_budget_error(message: str, fields: dict[str, Any]) -> LeakageBudgetError:
    return LeakageBudgetError(message, **fields)


class MissingExtraError(TemporaldpError, ImportError):
    """A library of an optional extra is not installed or cannot be loaded.

    Parameters
    ----------
    extra : str
        Extra of temporaldp that installs it.
    purpose : str
        Part of the package that needs it.
    problem : str
        Message of the original error.
    """

    def __init__(self, extra: str, purpose: str, problem: str) -> None:
        super().__init__(f"{purpose} needs more than temporaldp alone ({problem}): pip install 'temporaldp[{extra}]'")
        self.extra, self.purpose, self.problem = extra, purpose, problem

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled whole: errors cross process boundaries."""
        return type(self), (self.extra, self.purpose, self.problem)


class MissingFileError(TemporaldpError, FileNotFoundError):
    """A file that should be read and is not there."""


class ServiceError(TemporaldpError, OSError):
    """A service that did not answer; the request may have been carried out all the same."""


class RequestRefusedError(TemporaldpError, ValueError):
    """A request that a service answered and refused; nothing was spent or published.

    Parameters
    ----------
    message : str
        The service's words.
    status : int
        Of HTTP: 409 for what the level does not allow.
    remaining : float or None
        The largest epsilon that would be admitted in its place, in nats, where a budget was refused.
    """

    def __init__(self, message: str, *, status: int, remaining: float | None = None) -> None:
        super().__init__(message)
        self.status, self.remaining = status, remaining

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled whole: errors cross process boundaries."""
        return _request_refused_error, (str(self), {"status": self.status, "remaining": self.remaining})


def _request_refused_error(message: str, fields: dict[str, Any]) -> RequestRefusedError:
    return RequestRefusedError(message, **fields)


class OutputError(TemporaldpError, OSError):
    """An output that could not be written; nothing was left half-written."""


class LedgerError(TemporaldpError, OSError):
    """A ledger that cannot be read, written or trusted; nothing was published."""


class LedgerMismatchError(LedgerError, ValueError):
    """A ledger that was made for something else: another adversary, level, data schema or mechanism."""


class LedgerChangedError(LedgerError):
    """A ledger that was edited, cut off or exchanged after it was written: nothing vouches for it any more.

    Parameters
    ----------
    place : str
        Where it is.
    problem : str
        What does not fit.
    """

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.place, self.problem = place, problem

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled whole: errors cross process boundaries."""
        return type(self), (self.place, self.problem)


class InputDiffersWarning(UserWarning):
    """A step that was released is asked for again with other data; it gives the output that it had, and nothing was drawn.

    Parameters
    ----------
    time : str
        The step's label.
    """

    def __init__(self, time: str) -> None:
        super().__init__(
            f"time {time!r} was released from other data than these; what was published stays, and is given again"
        )
        self.time = time
