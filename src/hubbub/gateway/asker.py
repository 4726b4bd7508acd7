"""One signed-in client and the service: its statements become the same calls as those of an HTTP request.

Nothing here decides about privacy. Tested in tests/gateway/test_session.py.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from secrets import token_hex
from typing import Any, NoReturn, TypeVar

from hubbub.answers.budget import BudgetOverview, PastCharge
from hubbub.answers.estimate import margin
from hubbub.answers.release import Release
from hubbub.answers.statements import CATALOG_TABLES, plan, set_option
from hubbub.answers.statements import Result as Statement
from hubbub.core.numbers import brief, round_down
from hubbub.core.schema import Column, Table
from hubbub.curator.question import Question
from hubbub.errors import AccessError, LedgerError, ParameterError
from hubbub.gateway.catalog.contents import PgColumn, PgTable
from hubbub.gateway.catalog.database import Catalogs
from hubbub.gateway.catalog.translate import Names
from hubbub.gateway.listed_values import ListedValues, listed_values, may_list_values
from hubbub.gateway.result import Notice, PgColumns, PgResult
from hubbub.gateway.route import Route, route
from hubbub.gateway.statements import Ask
from hubbub.gateway.values import CLASSES, KINDS, NUMERIC, STRING, Parameter, fitting
from hubbub.gateway.variables import MORE_OPTIONS, Variables
from hubbub.server.accounts import Principal
from hubbub.server.query_pool import Job
from hubbub.server.service import Service

T = TypeVar("T")

#: The ε that an estimate uses where none is set.
SHOWN_EPSILON = Fraction(1, 10)
#: Rows above which encoding does not run in the event loop.
_MANY = 2000
_PAST = 500
_MAX_INTEGER = 2**63

_route = lru_cache(maxsize=512)(route)


class Asker:
    """Asks the service for one connection."""

    def __init__(
        self, service: Service, catalogs: Catalogs, principal: Principal, names: tuple[str, str, int], where: str
    ) -> None:
        """`names` are those of the user and the database, and the number of the connection."""
        self._service = service
        self._catalogs = catalogs
        self._principal = principal
        self._user, self._database, self._process = names
        self._where = f"{where} {principal.token or principal.name}"
        self.variables = Variables(self._user)
        self._stop = asyncio.Event()
        self._job: Job | None = None

    async def check(self) -> None:
        """Raise if the client's access was withdrawn, or if it asks too often."""
        await self._service.reserved.authenticate(self._where, self._check)

    def _check(self) -> None:
        self._service.accounts.still(self._principal)
        wait = self._service.requests_limit.take(f"{self._principal.role} {self._principal.name}")
        if wait:
            raise AccessError("HB720", "Too many requests.", f"Wait {wait} s and try again.", wait)

    def cancel(self) -> None:
        """Cancel the query that runs, if one does."""
        if self._job is not None:
            self._stop.set()

    async def free(self, call: Callable[..., T], /, *args: Any, **options: Any) -> T:
        """Run a call that costs nothing, in a thread, fairly and with a deadline."""
        return await self._service.free_pool.run(self._principal, _never, call, *args, **options)

    # What a query is: its way, its options, its columns.

    async def columns(self, ask: Ask, kinds: Sequence[int]) -> PgColumns | None:
        """Return the columns that a query will have; None if only the run tells."""
        return await self.free(self._columns, ask, len(kinds))

    def _columns(self, ask: Ask, count: int) -> PgColumns | None:
        self._service.accounts.still(self._principal)
        found = self._routed(ask.sql)
        if found.tree is not None:
            return self._asked_catalog(found, [None] * count).columns
        if ask.sql[:4].lower() == "call":
            return None
        values = listed_values(found.sql, self._tables())
        if values is not None:
            return _listed(values).columns
        question = self._question(found.sql, ask, _typical(found.sql, self._tables(), count))
        asked = self._service.sandbox if self._options(ask).get("sandbox") else self._service.queries
        listed = asked.columns(self._principal, question)
        if listed is None:
            return None
        intervals = bool(self._options(ask).get("intervals"))
        if not intervals:
            return tuple((name, KINDS[kind]) for name, kind in listed)
        return None  # which columns have intervals shows when they are there

    def parameter_types(self, sql: str, given: Sequence[int]) -> list[int]:
        """Return the types of the parameters of a query."""
        from hubbub.gateway import parameters

        if not parameters.count(sql):
            return list(given)
        self._service.accounts.still(self._principal)
        return parameters.types(sql, given, _oids(self._tables()))

    def _routed(self, sql: str) -> Route:
        datasets = self._service.catalog.datasets(self._principal)
        return _route(sql, frozenset(datasets), self._database)

    def _tables(self) -> tuple[Table, ...]:
        return self._service.catalog.tables(self._principal)

    def _options(self, ask: Ask) -> dict[str, Any]:
        """Return the options of a query: the configured defaults, then settings, then hints."""
        configured = self._service.settings.postgres
        options: dict[str, Any] = {}
        defaults = {} if configured is None else configured.defaults(self._principal.name, self.variables.application)
        for source in (defaults, self.variables.options, ask.hints):
            for name, value in source.items():
                options = set_option(options, name, value, more=MORE_OPTIONS)
        return options

    def _question(self, sql: str, ask: Ask, parameters: Sequence[Any]) -> Question:
        options = self._options(ask)
        if any(isinstance(value, list) for value in parameters):
            raise ParameterError(
                "HB813", "An array cannot be a parameter. Nothing was charged.", "Write one parameter for each value."
            )
        named = ("epsilon", "within", "delta", "groups", "rows")
        return Question(
            sql,
            **{name: options[name] for name in named if name in options},
            parameters=tuple(parameters),
            raw=options.get("raw", False),
            dialect=options.get("dialect", "postgres"),
        )

    # The answers.

    async def run(
        self, ask: Ask, parameters: Sequence[Parameter], arrived: float, announced: PgColumns | None
    ) -> PgResult:
        """Answer a query. `announced` are the columns that the client was told, if it was."""
        found = await self.free(self._routed, ask.sql)
        if found.tree is not None:
            result = await self.free(self._asked_catalog, found, parameters)
            return result if announced is None else replace(result, rows=_fitting(result.rows, announced))
        listed = await self.free(self._listed, found.sql) if may_list_values(found.sql) else None
        if listed is not None:
            return listed
        options = self._options(ask)
        question = self._question(found.sql, ask, parameters)
        release, notices = await self._ask(question, options, arrived)
        intervals = bool(options.get("intervals"))
        write = partial(_rows, release, announced, intervals=intervals)
        columns, rows = write() if len(release.ratio) < _MANY else await self.free(write)
        spent = Fraction(0) if release.replayed or release.sandbox else release.epsilon
        return PgResult(columns, rows, notices=notices, spent=spent)

    def _listed(self, sql: str) -> PgResult | None:
        """Answer a query that lists declared values."""
        self._service.accounts.still(self._principal)
        found = listed_values(sql, self._tables())
        return None if found is None else _listed(found)

    async def _ask(
        self, question: Question, options: Mapping[str, Any], arrived: float
    ) -> tuple[Release, tuple[Notice, ...]]:
        try:
            release = await self._charged(question, options, arrived)
        except ParameterError as error:
            if error.code != "HB132":
                raise
            raise await self.free(self._unpriced, question) from None
        return release, (_cost_notice(release),)

    async def _charged(self, question: Question, options: Mapping[str, Any], arrived: float) -> Release:
        """Ask the service; stop waiting if the client cancels."""
        queries = self._service.queries
        self._stop.clear()
        header = options.get("key") or token_hex(16)
        free = bool(options.get("free"))
        if options.get("sandbox"):
            job = self._service.sandbox.begin(self._principal, question, arrived=arrived)
        else:
            job = queries.begin(
                self._principal, question, key=options.get("fresh"), header=header, arrived=arrived, free=free
            )
        self._job = job
        answer = asyncio.ensure_future(queries.answer(self._principal, job))
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({answer, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done() and queries.stop(self._principal, job) == "cancelled":
                answer.add_done_callback(_retrieve)
                raise LedgerError(
                    "HB811",
                    "The query was cancelled. If it was charged already, the charge stays.",
                    "Repeat the same query: if it was charged, its answer is free.",
                )
            return await answer
        finally:
            self._job = None
            stop.cancel()

    def _unpriced(self, question: Question) -> ParameterError:
        """Return the error for a query without a price, with what it would cost."""
        estimate = self._service.queries.estimate(self._principal, replace(question, epsilon=SHOWN_EPSILON))
        errors = ", ".join(f"{each.name} {margin(each)}" for each in estimate.expected[:5])
        return ParameterError(
            "HB808",
            f"This query has no price. At ε = {brief(SHOWN_EPSILON)} it would give {errors or 'an answer'}; the largest"
            f" ε possible now is {round_down(estimate.largest)}. Nothing was run or charged.",
            "SET hubbub.epsilon = 0.1, or SET hubbub.within = '5%', or write /* epsilon=0.1 */ into the query. EXPLAIN"
            " shows the estimate.",
        )

    async def explain(self, ask: Ask, parameters: Sequence[Parameter]) -> PgResult:
        """Return the estimate of a query as rows."""
        return await self.free(self._explain, ask, parameters)

    def _explain(self, ask: Ask, parameters: Sequence[Parameter]) -> PgResult:
        found = self._routed(ask.sql)
        if found.tree is not None:
            return PgResult((("item", STRING), ("value", STRING)), [("cost", "free: the query reads the catalog")])
        if listed_values(found.sql, self._tables()) is not None:
            return PgResult((("item", STRING), ("value", STRING)), [("cost", "free: the query lists declared values")])
        question = self._question(found.sql, ask, parameters)
        notices: tuple[Notice, ...] = ()
        if question.epsilon is None and question.within is None:
            question = replace(question, epsilon=SHOWN_EPSILON)
            notices = (Notice(f"No price is set; this is the estimate for ε = {brief(SHOWN_EPSILON)}."),)
        asked = self._service.sandbox if self._options(ask).get("sandbox") else self._service.queries
        made = plan(asked.estimate(self._principal, question))
        return PgResult(_columns_of(made), made.rows, notices=notices, tag="EXPLAIN")

    # The catalog.

    def _asked_catalog(self, found: Route, parameters: Sequence[Any]) -> PgResult:
        if found.tree is None:
            raise AssertionError("a question about the catalog has a tree")
        tables = tuple(sorted(map(_catalog_table, self._tables()), key=lambda table: table.name)) + _OWN_TABLES
        names = Names(self._user, self._database, self._process, self.variables.get)
        return self._catalogs.of(tables).answer(found.tree, [_plain(each) for each in parameters], names, self._own)

    def _own(self, name: str) -> Statement | None:
        """Return a table of the schema hubbub."""
        create = CATALOG_TABLES.get(name.lower())
        return None if create is None else create(_Views(self._service, self._principal))


class _Views:
    """What the tables of the schema hubbub are made of."""

    def __init__(self, service: Service, principal: Principal) -> None:
        self._catalog, self._principal = service.catalog, principal

    def datasets(self) -> tuple[str, ...]:
        """List the datasets."""
        return self._catalog.datasets(self._principal)

    def describe(self, dataset: str) -> Table:
        """Return a declaration."""
        return next(table for table in self._catalog.tables(self._principal) if table.name == dataset)

    def budget(self) -> tuple[BudgetOverview, ...]:
        """List the caps."""
        return self._catalog.budget(self._principal)

    def releases(self, *, limit: int = 100, before: int | None = None) -> tuple[PastCharge, ...]:
        """List the charges, newest first."""
        return self._catalog.releases(self._principal, limit=min(limit, _PAST), before=before)


def _listed(found: ListedValues) -> PgResult:
    columns = ((found.name, KINDS[found.column.kind.value]),)
    said = Notice(f"Free: these are the declared values of {found.column.name}, whether or not rows have them.")
    return PgResult(columns, _fitting([(value,) for value in found.values], columns), notices=(said,))


def _catalog_table(table: Table) -> PgTable:
    columns = [
        PgColumn(column.name, column.kind.value, not column.required, _remark(column))
        for column in table.columns
        if not column.hidden
    ]
    remark = "public: answers are exact and free" if table.unit is None else "private: answers have noise and a price"
    return PgTable("public", table.name, tuple(columns), remark)


def _remark(column: Column) -> str:
    return column.clamping if column.values is None else f"{len(column.values)} declared values"


def _own_columns(**kinds: str) -> tuple[PgColumn, ...]:
    return tuple(PgColumn(name, kind) for name, kind in kinds.items())


#: The tables of the schema hubbub, as `answers.statements` makes them.
_OWN_TABLES = (
    PgTable(
        "hubbub",
        "budget",
        _own_columns(analyst="text", dataset="text", scope="text", name="text", per="text")
        + _own_columns(epsilon="real", delta="real", spent="real", left="real"),
        "what was spent and what is left",
    ),
    PgTable(
        "hubbub",
        "columns",
        _own_columns(dataset="text", name="text", type="text", low="real", high="real", values="integer"),
        "declared columns, with their bounds",
    ),
    PgTable(
        "hubbub",
        "datasets",
        _own_columns(dataset="text", protected="text", columns="integer"),
        "what can be queried, and what is protected in it",
    ),
    PgTable(
        "hubbub",
        "releases",
        _own_columns(id="integer", time="timestamp", dataset="text", query="text")
        + _own_columns(epsilon="real", delta="real", released="boolean"),
        "what was charged",
    ),
)


def _oids(tables: Sequence[Table]) -> dict[str, int]:
    """Return the types of columns by name, where all columns of a name have one type."""
    kinds: dict[str, set[str]] = {}
    for table in tables:
        for column in table.columns:
            kinds.setdefault(column.name.lower(), set()).add(column.kind.value)
    return {name: KINDS[next(iter(known))].oid for name, known in kinds.items() if len(known) == 1}


def _typical(sql: str, tables: Sequence[Table], count: int) -> list[Any]:
    """Return a value for each parameter: the columns of an answer do not depend on them."""
    from hubbub.gateway import parameters
    from hubbub.gateway.values import typical

    return [typical(oid) for oid in parameters.types(sql, [0] * count, _oids(tables))]


def _rows(release: Release, announced: PgColumns | None, *, intervals: bool) -> tuple[PgColumns, list[tuple[Any, ...]]]:
    """Return the columns and rows of a release; each value is of its column's type."""
    outputs = release.flat(intervals=intervals)
    if announced is None:
        columns = tuple((output.name, _kind(output.kind, output.values)) for output in outputs)
    elif len(announced) != len(outputs):
        raise ParameterError(
            "HB814",
            "The answer has other columns than were announced. The answer is recorded.",
            "Prepare the query again after changing settings; repeating it is free.",
        )
    else:
        columns = announced
    rows = list(zip(*(output.values for output in outputs), strict=True))
    return columns, _fitting(rows, columns)


def _kind(kind: str, values: Sequence[Any]) -> Any:
    if kind == "integer" and any(value is not None and abs(value) >= _MAX_INTEGER for value in values):
        return NUMERIC
    return KINDS[kind]


def _fitting(rows: Sequence[tuple[Any, ...]], columns: PgColumns) -> list[tuple[Any, ...]]:
    kinds = [kind for _, kind in columns]
    return [tuple(map(fitting, row, kinds)) for row in rows]


def _columns_of(statement: Statement) -> PgColumns:
    return tuple((name, CLASSES[kind]) for name, kind in statement.names)


def _cost_notice(release: Release) -> Notice:
    detail = [] if release.left_out is None else [f"Bounds: {release.left_out.sentence()}"]
    noisy = [output for output in release.outputs if output.low is not None]
    detail += [f"Intervals: SET hubbub.intervals = on. {release.intervals_note}."] if noisy else []
    notes = [note for note in release.notes if note != release.sandbox]
    return Notice(release.sandbox or f"Cost: {release.cost()}", "\n".join([*detail, *notes]))


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Fraction) else value


def _retrieve(future: "asyncio.Future[Any]") -> None:
    if not future.cancelled():
        future.exception()


async def _never() -> NoReturn:
    """Wait for the end of the connection, which other code notices."""
    await asyncio.Event().wait()
    raise AssertionError("unreachable")
