"""Plan queries without reading private data: from text and declarations to a prepared analysis.

Tested in tests/curator/test_path.py.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from hubbub.analyses.base import PreparedAnalysis, Setting
from hubbub.analyses.registry import prepare
from hubbub.answers.batch import BATCH
from hubbub.config import Config
from hubbub.core import call as calls
from hubbub.core import deadline
from hubbub.core.asked import once
from hubbub.core.schema import Table
from hubbub.curator import work
from hubbub.curator.batch import prepare_batch
from hubbub.curator.noise_choice import AS_ASKED, NoiseChoice, choose_noise, shown_caps
from hubbub.curator.open_blocks import OpenBlocks
from hubbub.curator.public_query import PublicQuery, public_query
from hubbub.curator.public_rows import PublicRowsQuery, public_rows_query
from hubbub.curator.queries import prepare_queries, selects_groups, solve_queries
from hubbub.curator.query import prepare_query
from hubbub.curator.question import Question
from hubbub.curator.running_totals import running_totals
from hubbub.engines.base import Engine
from hubbub.engines.multi_engine import engine_for
from hubbub.engines.registry import engine_named
from hubbub.errors import ParameterError, QueryError
from hubbub.sql import release_size as size
from hubbub.sql.bind import bind_releases
from hubbub.sql.blocks import no_block, within_blocks
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.disclosure import rule_of
from hubbub.sql.epsilon_search import solve
from hubbub.sql.plan import Plan
from hubbub.sql.query import Queries, Query

#: Replaces the salt in SQL that is shown: knowing which rows of a unit are kept would help to add a row that is kept.
UNSALTED = "…"
#: Analyses that go on reading the data after they were charged.
NOT_BY_BLOCK = frozenset({"stream", "above_threshold", "compare"})


@dataclass(frozen=True)
class Planner:
    """The declarations of one hubbub.yaml, and the dialects of the engines that hold its tables."""

    config: Config
    tables: Mapping[str, Table]
    engine: Engine
    open_blocks: OpenBlocks

    def datasets(self, analyst: str) -> tuple[str, ...]:
        """List the datasets that an analyst can query: public tables, and those with a cap for the analyst."""
        policy = self.config.policy
        if analyst not in policy.analysts:
            policy.caps(analyst, next(iter(policy.datasets), ""))  # raises, with the nearest name
        grouped = {d for members, caps in policy.groups.values() if analyst in members for d in caps}
        mine = set(policy.analysts[analyst]) | grouped
        return tuple(name for name, table in self.tables.items() if table.public or name in mine)

    def public_query(self, analyst: str, question: Question) -> PublicQuery | PublicRowsQuery | None:
        """Read a query that needs only public tables, or only the public number of rows; None for every other query."""
        tables = {name: self.tables[name] for name in self.datasets(analyst)}
        with deadline.limit_planning():
            public = any(table.public for table in tables.values())
            query = public_query(question, tables, most=size.json_cells(self.config.max_cells)) if public else None
            return query or self._public_rows_query(question, tables)

    def _public_rows_query(self, question: Question, tables: Mapping[str, Table]) -> PublicRowsQuery | None:
        if calls.is_call(question.sql) or not any(table.public_rows for table in tables.values()):
            return None
        query = _bind(question, tables)
        if isinstance(query, Queries) or query.after is not None:
            return None
        return public_rows_query(query, question, self._render_options(query.tables, UNSALTED))

    def plan(self, analyst: str, question: Question, *, salt: str) -> PreparedAnalysis:
        """Plan a query without reading data, in bounded time."""
        with deadline.limit_planning():
            visible = self.open_blocks.of({name: self.tables[name] for name in self.datasets(analyst)})
            if calls.is_call(question.sql):
                return self._plan_in_time(analyst, question, visible, salt=salt)
            key = ("plan", analyst, question.exact(), salt, _reads(visible))
            return once(key, lambda: self._plan_in_time(analyst, question, visible, salt=salt), weigh=_weight)

    def noise(self, analyst: str, question: Question) -> NoiseChoice:
        """Choose the noise of a query that is asked by accuracy; of every other one it is that of the plan."""
        given = question.noise is not None or question.within is None or question.epsilon is not None
        if given or calls.is_call(question.sql):
            return AS_ASKED
        with deadline.limit_planning():
            visible = self.open_blocks.of({name: self.tables[name] for name in self.datasets(analyst)})
            key = ("noise", analyst, question.exact(), _reads(visible))
            return once(key, lambda: self._noise_in_time(analyst, question, visible), weigh=lambda _: 100)

    def _noise_in_time(self, analyst: str, question: Question, visible: Mapping[str, Table]) -> NoiseChoice:
        query = within_blocks(_bind(question, visible))
        if isinstance(query, Queries):
            return AS_ASKED
        delta = self.delta(analyst, query.tables, question, selects_groups=selects_groups(query))
        policy, names = self.config.policy, [table.name for table in query.tables if table.unit is not None]
        caps = [cap for name in names for cap in shown_caps(policy, analyst, name)]
        return choose_noise(query, question, delta=delta, caps=caps)

    def _plan_in_time(
        self, analyst: str, question: Question, visible: Mapping[str, Table], *, salt: str
    ) -> PreparedAnalysis:
        if calls.is_call(question.sql):
            return self._prepare_call(analyst, question, visible, salt)
        query = within_blocks(_bind(question, visible))
        if isinstance(query, Queries):
            return self._plan_queries(analyst, question, query, salt)
        delta = self.delta(analyst, query.tables, question, selects_groups=selects_groups(query))
        if question.wants_accuracy():
            target = question.within or 0
            epsilon = solve(
                query, within=target, delta=delta, noise=question.known_noise, **question.planner_options(query)
            )
        else:
            epsilon = question.requested_epsilon()
        options = self._render_options(query.tables, salt)
        most = self.config.max_cells if query.after is None else size.json_cells(self.config.max_cells)
        planned = prepare_query(
            query, question, options, epsilon=epsilon, delta=delta, most=most, noise=question.known_noise
        )
        size.check(planned.plan, most=most, joint=question.joint)
        self._check_work(planned.plan)
        if rule_of(planned.plan).form:  # totals over sums that are never shown would get around the owner's rules
            return planned
        return running_totals(planned, question, options, delta=delta)

    def _plan_queries(self, analyst: str, question: Question, queries: Queries, salt: str) -> PreparedAnalysis:
        """Plan several releases of one statement."""
        tables = [table for query in queries.parts for table in query.tables]
        delta = self.delta(analyst, tables, question, selects_groups=any(map(selects_groups, queries.parts)))
        exact = question.wants_accuracy()
        epsilon = solve_queries(queries, question, delta) if exact else question.requested_epsilon()
        prepared = prepare_queries(
            queries,
            question,
            lambda read: self._render_options(read, salt),
            epsilon=epsilon,
            delta=delta,
            most=size.json_cells(self.config.max_cells),
            noise=question.known_noise,
        )
        for part in prepared.parts:
            self._check_work(part.plan)
        return prepared

    def _check_work(self, plan: Plan) -> None:
        """Raise an error if a plan cannot finish on this machine, by the declared number of rows."""
        limits = self.config.limits
        if plan.work is not None:
            work.check(plan.work, limits)

    def _render_options(self, tables: Iterable[Table], salt: str) -> RenderOptions:
        """Give the SQL dialect of the engine that has these tables, with hash and salt."""
        engine = engine_for(self.engine, [table.name for table in tables])
        dialect = engine_named(engine.dialect).load_dialect()
        return RenderOptions(salt, self.config.hashing, dialect, self.config.limits.local_memory)

    def _prepare_call(
        self, analyst: str, question: Question, visible: Mapping[str, Table], salt: str
    ) -> PreparedAnalysis:
        """Prepare a call with the δ and the SQL dialect of the tables that the prepared analysis reads."""
        question.refuse_for_call()
        call = calls.parse_call(question.sql)
        if call.name == BATCH:
            return self._prepare_batch(analyst, question, call, visible, salt)

        def prepared(tables: Sequence[Table]) -> PreparedAnalysis:
            delta, options = self.delta(analyst, tables, question), self._render_options(tables, salt)
            limits = (question.groups, question.rows, size.json_cells(self.config.max_cells))
            return prepare(
                call, Setting(visible, question.requested_epsilon(), delta, options, *limits), question.user_function
            )

        table = visible.get(str(call.arguments.get("table")))
        if call.name in NOT_BY_BLOCK and table is not None and table.name in self.config.policy.reviews:
            raise QueryError(
                "HB796",
                f"{call.name} gives answers over time, and answers on {table.name} are reviewed before they are shown. "
                "Nothing was charged.",
                "Use a query or another analysis, whose answer can be reviewed as a whole.",
            )
        if call.name in NOT_BY_BLOCK and table is not None and table.blocks is not None:
            raise QueryError(
                "HB796",
                f"{call.name} reads data over time, and {table.name} has a budget for each block. Nothing was charged.",
                "Use a query or another analysis, which is charged to the blocks that it reads.",
            )
        if table is not None and table.blocks is not None and not table.blocks.read:
            raise no_block(table.name)
        planned = prepared([] if table is None else [table])
        # a condition may read other tables
        return planned if planned.tables == (table,) else prepared(planned.tables)

    def _prepare_batch(
        self, analyst: str, question: Question, call: calls.AnalysisCall, visible: Mapping[str, Table], salt: str
    ) -> PreparedAnalysis:
        """Prepare a batch of queries with the δ of all tables that they read."""
        if question.groups is not None or question.rows is not None:
            raise ParameterError(
                "HB147", "A batch does not accept groups or rows.", "Ask questions with bounds of their own one by one."
            )
        return prepare_batch(
            call,
            visible,
            lambda read: self._render_options(read, salt),
            lambda read, selects: self.delta(analyst, read, question, selects_groups=selects),
            epsilon=question.requested_epsilon(),
            most=size.json_cells(self.config.max_cells),
        )

    def delta(
        self, analyst: str, tables: Iterable[Table], question: Question, *, selects_groups: bool = False
    ) -> Fraction:
        """Give the δ that a plan may use: that of the caps, or less if the query requests it."""
        names = [table.name for table in tables if table.unit is not None]
        caps = [cap for name in names for cap in self.config.policy.caps(analyst, name)]
        least = min((cap.budget.delta for cap in caps), default=Fraction(0))
        return question.allowed_delta(least, selects_groups=selects_groups)


def _bind(question: Question, visible: Mapping[str, Table]) -> Query | Queries:
    """Bind a query to the tables that its analyst can see; at several prices, once."""
    text, values = question.sql, question.values()
    exact = tuple((type(value), repr(value)) for value in values)
    return once(
        ("bind", text, question.dialect, exact, _reads(visible)),
        lambda: bind_releases(text, tables=visible, parameters=values, dialect=question.dialect),
        weigh=lambda _: len(text),
    )


def _reads(visible: Mapping[str, Table]) -> tuple[Hashable, ...]:
    """Identify tables, which are always the same, and the blocks that exist today."""
    return tuple((name, None if table.blocks is None else table.blocks.read) for name, table in visible.items())


def _weight(planned: PreparedAnalysis) -> int:
    return planned.cells + sum(map(len, planned.statements))
