"""Every error that temporaldp raises on purpose.

::

    TemporaldpError
    ├── InputError (ValueError)            a value that cannot be used as given
    │   ├── MatrixError                    a matrix that is not a transition matrix
    │   ├── StateError                     state names that are missing, repeated, unknown or do not match
    │   ├── BudgetError                    an epsilon, alpha or horizon that is not admissible
    │   ├── TraceError                     traces that cannot be read as one state per user and time
    │   └── EstimationError                a correlation that the traces do not determine
    ├── PlanError (ValueError)             no budget of the asked kind holds the asked level
    ├── MissingFileError (FileNotFoundError)
    └── OutputError (OSError)              an output that could not be written; nothing was left half-written

Each class also derives from the builtin that a caller would expect, so ``except ValueError`` works.
"""


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


class TraceError(InputError):
    """Traces that cannot be read as at most one state per user and time."""


class EstimationError(InputError):
    """A correlation that the traces do not determine."""


class PlanError(TemporaldpError, ValueError):
    """No budget of the asked kind holds the asked level."""


class MissingFileError(TemporaldpError, FileNotFoundError):
    """A file that should be read and is not there."""


class OutputError(TemporaldpError, OSError):
    """An output that could not be written; nothing was left half-written."""
