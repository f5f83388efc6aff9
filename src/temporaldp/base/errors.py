"""Errors and warnings of temporaldp.

::

    TemporaldpError
    ├── InputError (ValueError)            a value that cannot be used as given
    │   ├── MatrixError                    a matrix that is not a transition matrix
    │   ├── StateError                     state names that are missing, repeated, unknown or do not match
    │   ├── BudgetError                    an epsilon, alpha or horizon that is not admissible
    │   │   └── SpentError                 a refused step: the plan, the horizon or the sustainable budget is used up
    │   ├── LateDataError                  a refused step: its time is before that of a released step
    │   ├── TraceError                     traces that cannot be read as one state per user and time
    │   └── EstimationError                a correlation that the traces do not determine
    ├── PlanError (ValueError)             no budget of the requested kind satisfies the requested level
    ├── LeakageBudgetError (ValueError)    a budget that an accountant refuses: it would exceed the level
    ├── MissingExtraError (ImportError)    a library of an optional extra that is not installed
    ├── MissingFileError (FileNotFoundError)
    ├── ServiceError (OSError)             a service that did not answer
    ├── RequestRefusedError (ValueError)   a request that a service refused
    ├── OutputError (OSError)              an output that could not be written; no partial output remains
    └── LedgerError (OSError)              a ledger that cannot be read, written or trusted
        ├── LedgerMismatchError (ValueError)   a ledger of another release
        └── LedgerChangedError             a ledger that was edited, truncated or replaced after it was written

Each class also derives from the builtin that a caller would expect, so ``except ValueError`` works.
"""

import copyreg
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
    """Base class of all errors of temporaldp."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle message and fields without a call of `__init__`, because errors cross process boundaries."""
        return copyreg.__newobj__, (type(self),), {"args": self.args, **vars(self)}  # type: ignore[attr-defined]


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
    """A step is refused: its time is before that of a released step. Nothing was drawn."""


class TraceError(InputError):
    """Traces that cannot be read as at most one state per user and time."""


class EstimationError(InputError):
    """A correlation that the traces do not determine."""


class PlanError(TemporaldpError, ValueError):
    """No budget of the requested kind satisfies the requested level."""


class LeakageBudgetError(TemporaldpError, ValueError):
    """A budget was refused because temporal privacy leakage would exceed the level; nothing was spent.

    Parameters
    ----------
    message : str
    requested : float
        Requested epsilon, in nats.
    largest : float
        Largest epsilon that would be admitted, in nats; 0 if none.
    worst_time : int
        Index (from 0) of the step with the largest leakage.
    leakage : float
        Temporal privacy leakage at that step if the budget were admitted, including the reserve for later steps, in nats.
    alpha : float
        The level.
    user : str or None
        User with this leakage, if users have names.
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
        super().__init__(
            f"{purpose} requires the extra {extra!r} ({problem}): python -m pip install '.[{extra}]' in a checkout"
        )
        self.extra, self.purpose, self.problem = extra, purpose, problem

    def __reduce__(self) -> tuple[Any, ...]:
        """Call `__init__` again, which sets the message of an `ImportError`."""
        return type(self), (self.extra, self.purpose, self.problem)


class MissingFileError(TemporaldpError, FileNotFoundError):
    """A file to be read does not exist."""


class ServiceError(TemporaldpError, OSError):
    """A service did not answer; the request may nevertheless have been carried out."""


class RequestRefusedError(TemporaldpError, ValueError):
    """A service refused a request; nothing was spent or published.

    Parameters
    ----------
    message : str
        Message of the service.
    status : int
        HTTP status: 409 for a budget that would exceed the level.
    remaining : float or None
        Largest epsilon that would be admitted, in nats, if a budget was refused.
    """

    def __init__(self, message: str, *, status: int, remaining: float | None = None) -> None:
        super().__init__(message)
        self.status, self.remaining = status, remaining


class OutputError(TemporaldpError, OSError):
    """An output could not be written; no partial output remains."""


class LedgerError(TemporaldpError, OSError):
    """A ledger cannot be read, written or trusted; nothing was published."""


class LedgerMismatchError(LedgerError, ValueError):
    """A ledger belongs to another release: another adversary, level, data schema or mechanism."""


class LedgerChangedError(LedgerError):
    """A ledger was edited, truncated or replaced after it was written.

    Parameters
    ----------
    place : str
        Place of the ledger.
    problem : str
        Description of the inconsistency.
    """

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.place, self.problem = place, problem


class InputDiffersWarning(UserWarning):
    """A released step was requested again with different data; its stored output is returned, and nothing was drawn.

    Parameters
    ----------
    time : str
        Label of the step.
    """

    def __init__(self, time: str) -> None:
        super().__init__(f"time {time!r} was released from different data; the published output is returned again")
        self.time = time
