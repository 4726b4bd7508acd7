"""The questions of a batch: SQL queries and analyses, with their weights, bound to the tables that they read.

    CALL batch(queries => ['SELECT COUNT(*) FROM visits', 'CALL kmeans(table => ''visits'', …)'], weights => [1, 3])

Tested in tests/curator/test_batch_calls.py.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from hubbub.analyses.base import Arrays, PreparedAnalysis, Run, Setting
from hubbub.analyses.registry import USER_FUNCTIONS, prepare
from hubbub.answers.batch import BATCH
from hubbub.core import call as calls
from hubbub.core import numbers
from hubbub.core.call import AnalysisCall
from hubbub.core.schema import Table
from hubbub.core.secret import Secret
from hubbub.errors import ParameterError, QueryError
from hubbub.noise.source import RandomSource
from hubbub.sql.bind import bind_releases
from hubbub.sql.blocks import no_block
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.query import Queries, Query

#: Most questions of a batch, and most of them that are analyses.
MAX_QUESTIONS, MAX_ANALYSES = 1000, 50
#: A question may weigh this many times as much as another.
MAX_WEIGHT = 1000

#: Analyses that answer over time, or run code of the data owner's process.
NOT_IN_BATCHES = frozenset({BATCH, "stream", "above_threshold", "compare", *USER_FUNCTIONS})

#: Gives the SQL dialect, hash and salt for the tables that a query reads.
Rendering = Callable[[Sequence[Table]], RenderOptions]
#: A question that was checked and bound.
Bound = Query | Queries | AnalysisCall


@dataclass(frozen=True, slots=True)
class PartOfRun:
    """The run of a batch, as one of its analyses sees it: progress of the part is a part of the progress."""

    run: Run
    begins: float
    length: float

    @property
    def source(self) -> RandomSource:
        """The randomness of every draw."""
        return self.run.source

    def ask(self, sql: str) -> Secret[Arrays]:
        """Run SQL."""
        return self.run.ask(sql)

    def progress(self, done: float, what: str) -> None:
        """Report progress."""
        self.run.progress(self.begins + self.length * done, what)


def read_questions(call: AnalysisCall) -> tuple[list[str], list[Fraction]]:
    """Read the texts of a batch and their weights, which are 1 by default."""
    queries = call.arguments.get("queries")
    texts = [each for each in queries if isinstance(each, str)] if isinstance(queries, list) else []
    strange = not set(call.arguments) <= {"queries", "weights"} or texts != queries
    if strange or not 1 <= len(texts) <= MAX_QUESTIONS:
        raise QueryError(
            "HB790",
            f"A batch takes `queries`, a list of 1 to {MAX_QUESTIONS:,} SQL queries and analyses, and if wanted"
            " `weights`.",
            "Write CALL batch(queries => ['SELECT COUNT(*) FROM visits', 'SELECT AVG(age) FROM visits']).",
        )
    if sum(map(calls.is_call, texts)) > MAX_ANALYSES:
        raise QueryError(
            "HB790", f"A batch takes at most {MAX_ANALYSES} analyses.", "Split the batch into several batches."
        )
    return texts, _weights(call.arguments.get("weights"), len(texts))


def _weights(given: object, count: int) -> list[Fraction]:
    if given is None:
        return [Fraction(1)] * count
    listed = given if isinstance(given, list) else []
    if len(listed) != count or any(isinstance(each, bool) or not isinstance(each, int | Fraction) for each in listed):
        raise QueryError(
            "HB840",
            f"`weights` of a batch is not a list of {count} numbers, one for each question.",
            "Write weights => [1, 2, …] in the order of the queries, or omit it.",
        )
    return [numbers.in_range(each, "a weight", Fraction(1, MAX_WEIGHT), Fraction(MAX_WEIGHT)) for each in listed]


def bind_question(number: int, text: str, tables: Mapping[str, Table]) -> Bound:
    """Bind one question, or say which one cannot be bound."""
    try:
        if not calls.is_call(text):
            return bind_releases(text, tables=tables)
        call = calls.parse_call(text)
    except (QueryError, ParameterError) as error:
        raise in_question(number, error) from None
    if call.name in NOT_IN_BATCHES:
        raise QueryError(
            "HB790", f"Question {number} of the batch is {call.name}, which cannot be in a batch.", "Run it by itself."
        )
    return call


def prepare_call(
    call: AnalysisCall,
    tables: Mapping[str, Table],
    rendering: Rendering,
    *,
    epsilon: Fraction,
    delta: Fraction,
    most: int,
) -> PreparedAnalysis:
    """Prepare an analysis with the SQL dialect of the tables that it turns out to read."""

    def prepared(read: Sequence[Table]) -> PreparedAnalysis:
        return prepare(call, Setting(tables, epsilon, delta, rendering(read), max_cells=most))

    table = tables.get(str(call.arguments.get("table")))
    if table is not None and table.blocks is not None and not table.blocks.read:
        raise no_block(table.name)
    planned = prepared([] if table is None else [table])
    return planned if planned.tables == (table,) else prepared(planned.tables)


def in_question(number: int, error: QueryError | ParameterError) -> QueryError:
    """Say which question an error is about."""
    return QueryError(error.code, f"Question {number} of the batch: {error.message}", error.remedy)
