"""DB-API 2.0 (PEP 249), so that pandas and polars read private answers: `hubbub.dbapi.connect(url, token, epsilon=…)`.

What a question may cost is a setting of the connection: `epsilon=0.1`, or the statement `SET hubbub.epsilon = 0.1`;
`within`, `delta`, `groups`, `rows`, `raw`, `dialect` are others, and `intervals` adds the ends of 95% intervals as
columns.
The same question on the same data is answered at no further cost. `EXPLAIN SELECT …` is free, and so are
`SELECT * FROM hubbub.budget`, `hubbub.datasets`, `hubbub.columns` and `hubbub.releases`.
"""

from datetime import date, datetime, time
from pathlib import Path
from typing import Any

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
from hubbub.client.dbapi.statements import AnySession, set_option
from hubbub.errors import engine_missing

apilevel = "2.0"
threadsafety = 1  #: threads may share the module, but not connections
paramstyle = "qmark"

Date = date
Time = time
Timestamp = datetime
Binary = bytes


def DateFromTicks(ticks: float) -> date:  # noqa: N802 - the name that PEP 249 gives it
    """Give the day of a time in seconds since 1970, here."""
    return date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> time:  # noqa: N802
    """Give the time of day of a time in seconds since 1970, here."""
    return datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime:  # noqa: N802
    """Give the time stamp of a time in seconds since 1970, here."""
    return datetime.fromtimestamp(ticks)


class _Kind:
    """Equal to every type that a column of this kind may have."""

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

    Settings say how questions are asked: `epsilon=0.1`, or `within=50`, and so on. See `hubbub.connect` for the rest.
    """
    if (url is None) == (path is None) or (url is None) != (token is None):
        raise InterfaceError(
            "HB180", "it is not said where to connect.", "Give url and token of a server, or path= of a hubbub.yaml."
        )
    with translate_errors():
        found: dict[str, Any] = {}
        for name, value in settings.items():
            found = set_option(found, name, value)
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
        return Connection(session, found)


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
