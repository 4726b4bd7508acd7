"""DB-API 2.0 connections and cursors.

Tested in tests/client/dbapi/test_dbapi.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, NoReturn, Self

from hubbub.answers import statements
from hubbub.answers.options import Options
from hubbub.answers.release import Release
from hubbub.answers.statements import AnySession, Result
from hubbub.client.dbapi import errors as failures
from hubbub.client.dbapi.errors import InterfaceError, NotSupportedError, ProgrammingError, translate_errors
from hubbub.errors import ParameterError

Description = tuple[str, type, None, None, None, None, bool]


class Connection:
    """A session with settings for its queries. Charges are final, so there are no transactions."""

    Warning = failures.Warning
    Error = failures.Error
    InterfaceError = failures.InterfaceError
    DatabaseError = failures.DatabaseError
    DataError = failures.DataError
    OperationalError = failures.OperationalError
    IntegrityError = failures.IntegrityError
    InternalError = failures.InternalError
    ProgrammingError = failures.ProgrammingError
    NotSupportedError = failures.NotSupportedError

    def __init__(self, session: AnySession, settings: Mapping[str, Any]) -> None:
        """Use `hubbub.client.dbapi.connect`."""
        self.session = session
        self.settings = dict(settings)
        self._open = True

    def cursor(self) -> "Cursor":
        """Open a cursor."""
        self.check()
        return Cursor(self)

    def commit(self) -> None:
        """Do nothing: every charge is durable before its answer is returned."""
        self.check()

    def rollback(self) -> None:
        """Do nothing: charges cannot be rolled back."""
        self.check()

    def close(self) -> None:
        """Close the session; a second time does nothing."""
        if self._open:
            self._open = False
            self.session.close()

    def check(self) -> None:
        """Raise if the connection is closed."""
        if not self._open:
            raise InterfaceError("HB187", "The connection is closed.", "Open a new connection.")

    def options(self) -> Options:
        """Return the settings that are query options."""
        own = ("intervals", "free")  # of an answer, and of a query that is not estimated
        return {name: value for name, value in self.settings.items() if name not in own}  # type: ignore[return-value]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Cursor:
    """Runs statements and holds their results; `release` has the intervals, privacy cost and receipt of a query."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.release: Release | None = None
        self._result: Result | None = None
        self._next = 0
        self._open = True

    @property
    def description(self) -> tuple[Description, ...] | None:
        """The name and type of each column; None if the last statement has no result."""
        if self._result is None:
            return None
        return tuple((name, kind, None, None, None, None, True) for name, kind in self._result.names)

    @property
    def rowcount(self) -> int:
        """The number of rows; -1 if the last statement has no result."""
        return -1 if self._result is None else len(self._result.rows)

    @property
    def rownumber(self) -> int | None:
        """The index of the next row."""
        return None if self._result is None else self._next

    def execute(self, operation: str, parameters: Sequence[Any] = ()) -> Self:
        """Run a query, or SET hubbub.epsilon = 0.1, EXPLAIN SELECT …, SELECT * FROM hubbub.budget."""
        self._check()
        self._result, self.release, self._next = None, None, 0
        if isinstance(parameters, str | bytes | Mapping) or not isinstance(parameters, Sequence):
            raise ProgrammingError(
                "HB188",
                "The parameters are not a list or tuple.",
                "Pass them in the order of the ? placeholders, as in execute(sql, [7, 'North']).",
            )
        with translate_errors():
            self._result = self._run(operation, tuple(map(_plain, parameters)))
        self.release = None if self._result is None else self._result.release
        return self

    def _run(self, sql: str, parameters: tuple[Any, ...]) -> Result | None:
        connection = self.connection
        settings = statements.changed_settings(sql, connection.settings)
        if settings is not None:
            connection.settings = settings
            return None
        options: Options = {**connection.options(), "parameters": parameters}
        if (result := statements.catalog_table(sql, connection.session)) is not None:
            return result
        try:
            if (query := statements.explained_query(sql)) is not None:
                return statements.plan(connection.session.estimate(query, **options))
            release = connection.session.query(sql, free=connection.settings.get("free", False), **options)
        except ParameterError as error:
            if error.code != "HB132":
                raise
            raise ProgrammingError(
                "HB132",
                "Neither epsilon nor within was given.",
                "Set one for the connection: connect(…, epsilon=0.1), or SET hubbub.epsilon = 0.1. Only queries on"
                " public tables need none.",
            ) from None
        return statements.answer(release, intervals=connection.settings.get("intervals", False))

    def executemany(self, operation: str, seq_of_parameters: Sequence[Sequence[Any]]) -> NoReturn:  # noqa: ARG002
        """Raise: each query has its own privacy cost and must be executed separately."""
        raise NotSupportedError("HB189", "executemany is not supported.", "Call execute for each query.")

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, or None after the last."""
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """Return the next rows."""
        rows, first = self._rows(), self._next
        self._next = min(len(rows), first + (self.arraysize if size is None else max(0, size)))
        return rows[first : self._next]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all remaining rows."""
        return self.fetchmany(len(self._rows()))

    def setinputsizes(self, sizes: object) -> None:
        """Do nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing, as PEP 249 allows."""

    def close(self) -> None:
        """Close the cursor and discard its result."""
        self._open, self._result, self.release = False, None, None

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self

    def __next__(self) -> tuple[Any, ...]:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _rows(self) -> list[tuple[Any, ...]]:
        self._check()
        if self._result is None:
            raise ProgrammingError("HB190", "There is no result to fetch.", "Execute a SELECT first.")
        return self._result.rows

    def _check(self) -> None:
        self.connection.check()
        if not self._open:
            raise InterfaceError("HB187", "The cursor is closed.", "Open a new cursor.")


def _plain(value: Any) -> Any:
    """Convert numpy and pandas values to Python values."""
    if isinstance(value, datetime) and hasattr(value, "to_pydatetime"):
        return value.to_pydatetime()
    return value.item() if hasattr(value, "item") and hasattr(value, "dtype") else value
