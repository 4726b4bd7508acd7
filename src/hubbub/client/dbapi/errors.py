"""The errors of DB-API 2.0, each with the code, message, remedy and position of the error it stands for."""

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
    RunError,
    ServerError,
)


class Warning(Exception):  # noqa: A001, N818 - the name that PEP 249 gives it
    """Something of importance that is no error. hubbub has none."""


class Error(HubbubError):
    """The root of all errors of this module."""

    position: tuple[int, int] | None = None


class InterfaceError(Error):
    """The module is used wrongly, or cannot reach what it talks to."""


class DatabaseError(Error):
    """The curator refuses, or fails."""


class DataError(DatabaseError):
    """A value that cannot be taken."""


class OperationalError(DatabaseError):
    """Not the question's fault: a budget that is spent, a server that is gone, a run that failed."""


class IntegrityError(DatabaseError):
    """hubbub has none: nothing can be written."""


class InternalError(DatabaseError):
    """The curator is not in order."""


class ProgrammingError(DatabaseError):
    """A question that cannot be answered as it is written."""


class NotSupportedError(DatabaseError):
    """Something that a curator does not do."""


_KINDS: tuple[tuple[type[HubbubError], type[Error]], ...] = (
    (ParameterError, ProgrammingError),
    (QueryError, ProgrammingError),
    (BudgetError, OperationalError),
    (LedgerError, OperationalError),
    (ConfigError, OperationalError),
    (AccessError, OperationalError),
    (RunError, OperationalError),
    (ServerError, InterfaceError),
    (MechanismError, NotSupportedError),
)


@contextmanager
def translate_errors() -> Iterator[None]:
    """Turn errors of hubbub into those that DB-API 2.0 knows."""
    try:
        yield
    except Error:
        raise
    except HubbubError as error:
        kind = next((kind for ours, kind in _KINDS if isinstance(error, ours)), InternalError)
        found = kind(error.code, error.message, error.remedy)
        found.position = getattr(error, "position", None)
        raise found from error
