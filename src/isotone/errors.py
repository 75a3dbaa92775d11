"""The exceptions of isotone. Each message says what was wrong and what to do about it.

Messages may quote public values (names, parameters, paths); they never quote private data.
"""

__all__ = [
    "BudgetError",
    "DeliveryError",
    "InputError",
    "IsotoneError",
    "LedgerError",
    "MissingExtraError",
    "OrderError",
    "SpecError",
]


class IsotoneError(Exception):
    """The base of every error that isotone raises on purpose."""


class InputError(IsotoneError, ValueError):
    """A public argument (a parameter, a name, a shape) is not usable."""


class OrderError(InputError):
    """The relations given are not a partial order on the elements given."""


class SpecError(InputError):
    """A specification file has a missing, unknown or ill-typed entry."""


class MissingExtraError(IsotoneError):
    """A library is not installed that an extra of isotone brings."""


class DeliveryError(IsotoneError):
    """A release was made, and could not be written or moved to where it goes."""


class LedgerError(IsotoneError):
    """A ledger is missing, corrupt, or belongs to something else."""


class BudgetError(LedgerError):
    """A charge would exceed the budget that is left."""
