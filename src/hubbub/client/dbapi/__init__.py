"""DB-API 2.0 (PEP 249) for pandas, polars and other tools: `hubbub.dbapi.connect(url, token, epsilon=…)`.

The privacy cost of queries is a setting of the connection: `epsilon=0.1`, or the statement `SET hubbub.epsilon = 0.1`.
Other settings are `within`, `delta`, `groups`, `rows`, `raw` and `dialect`; `intervals` adds the ends of 95% intervals
as columns. Repeating a query on the same data is free. So are `EXPLAIN SELECT …` and `SELECT * FROM hubbub.budget`,
`hubbub.datasets`, `hubbub.columns` and `hubbub.releases`.
"""

from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from hubbub.answers.statements import AnySession, set_option
from hubbub.client.dbapi.cursor import Connection, Cursor
from hubbub.client.dbapi.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004 - the name that PEP 249 gives it
    translate_errors,
)
from hubbub.errors import engine_missing

apilevel = "2.0"
threadsafety = 1  #: threads may share the module, but not connections
paramstyle = "qmark"

Date = date
Time = time
Timestamp = datetime
Binary = bytes


def DateFromTicks(ticks: float) -> date:  # noqa: N802 - the name that PEP 249 gives it
    """Return the local date of a Unix timestamp."""
    return date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> time:  # noqa: N802
    """Return the local time of day of a Unix timestamp."""
    return datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime:  # noqa: N802
    """Return the local date and time of a Unix timestamp."""
    return datetime.fromtimestamp(ticks)


class _Kind:
    """A type object that equals every Python type of its columns."""

    def __init__(self, *types: type) -> None:
        self._types = types

    def __eq__(self, other: object) -> bool:
        return other in self._types

    def __hash__(self) -> int:
        return hash(self._types)


STRING = _Kind(str)
BINARY = _Kind(bytes)
NUMBER = _Kind(bool, int, float)
DATETIME = _Kind(date, datetime)
ROWID = _Kind()


def connect(
    url: str | None = None,
    token: str | None = None,
    *,
    path: str | Path | None = None,
    analyst: str | None = None,
    timeout: float = 30.0,
    retries: int = 4,
    ca: str | Path | None = None,
    insecure: bool = False,
    **settings: Any,
) -> Connection:
    """Connect to a server (`url` and `token`), or open a hubbub.yaml (`path`, and `analyst` if it has several).

    Settings apply to all queries: `epsilon=0.1`, or `within=50`, and so on. See `hubbub.connect` for the other
    arguments.
    """
    if (url is None) == (path is None) or (url is None) != (token is None):
        raise InterfaceError(
            "HB180",
            "No connection target was given.",
            "Pass url and token to use a server, or path to open a local hubbub.yaml.",
        )
    with translate_errors():
        options: dict[str, Any] = {}
        for name, value in settings.items():
            options = set_option(options, name, value)
        session: AnySession
        if path is not None:
            try:
                from hubbub.curator.session import open_session
            except ModuleNotFoundError as missing:
                if missing.name != "hubbub.curator":
                    raise
                raise engine_missing() from None
            session = open_session(path, analyst=analyst)
        else:
            from hubbub.client.session import connect as connect_to

            session = connect_to(url or "", token or "", timeout=timeout, retries=retries, ca=ca, insecure=insecure)
        return Connection(session, options)


__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
