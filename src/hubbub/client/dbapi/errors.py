"""The exceptions of DB-API 2.0, with the code, message, remedy and position of the original error."""

from collections.abc import Iterator
from contextlib import contextmanager

from hubbub.errors import (
    AccessError,
    BudgetError,
    ConfigError,
    HubbubError,
    LedgerError,
    MechanismError,
    ParameterError,
    QueryError,
    ReviewError,
    RunError,
    ServerError,
)


class Warning(Exception):  # noqa: A001, N818 - the name that PEP 249 gives it
    """A warning, as PEP 249 requires. hubbub raises none."""


class Error(HubbubError):
    """The base class of all errors of this module."""

    position: tuple[int, int] | None = None


class InterfaceError(Error):
    """Wrong use of the module, or an unreachable server."""


class DatabaseError(Error):
    """The curator rejected a statement or failed."""


class DataError(DatabaseError):
    """An invalid value."""


class OperationalError(DatabaseError):
    """A failure that the query did not cause: an exhausted budget, a missing server, a failed run."""


class IntegrityError(DatabaseError):
    """An integrity violation, as PEP 249 requires. hubbub raises none, because it is read-only."""


class InternalError(DatabaseError):
    """An internal error of the curator."""


class ProgrammingError(DatabaseError):
    """An invalid query or parameter."""


class NotSupportedError(DatabaseError):
    """An unsupported operation."""


_KINDS: tuple[tuple[type[HubbubError], type[Error]], ...] = (
    (ParameterError, ProgrammingError),
    (QueryError, ProgrammingError),
    (BudgetError, OperationalError),
    (LedgerError, OperationalError),
    (ConfigError, OperationalError),
    (AccessError, OperationalError),
    (RunError, OperationalError),
    (ReviewError, OperationalError),
    (ServerError, InterfaceError),
    (MechanismError, NotSupportedError),
)


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translate hubbub errors into DB-API 2.0 errors."""
    try:
        yield
    except Error:
        raise
    except HubbubError as error:
        kind = next((kind for ours, kind in _KINDS if isinstance(error, ours)), InternalError)
        translated = kind(error.code, error.message, error.remedy)
        translated.position = getattr(error, "position", None)
        raise translated from error
