"""The names and kinds of the columns of an answer, before it is charged; from the text and the declarations alone."""

from collections.abc import Callable

from hubbub.analyses.base import PreparedAnalysis
from hubbub.answers.release import Release
from hubbub.core.schema import Kind
from hubbub.curator.public_query import PublicQuery
from hubbub.curator.public_rows import PublicRowsQuery
from hubbub.curator.queries import PreparedQueries
from hubbub.curator.query import PreparedQuery
from hubbub.curator.release_query import ReleaseQuery
from hubbub.curator.running_totals import PreparedRunningTotals
from hubbub.sql.estimates import mentioned
from hubbub.sql.expressions import Col
from hubbub.sql.ordinary_sql import kind_of
from hubbub.sql.query import After, Query

AnswerColumns = tuple[tuple[str, str], ...]
_CHOSEN = frozenset({"min", "max", "mode", "quantile"})
Free = PublicQuery | PublicRowsQuery


def columns_of(
    query: ReleaseQuery | Free | PreparedAnalysis, answer: Callable[[Free], Release]
) -> AnswerColumns | None:
    """List the columns of an answer, each with its kind; None if only the run tells.

    A query on public tables is answered, which is free. A column without any value may have another kind.
    """
    match query:
        case PublicQuery():
            return tuple((output.name, output.kind) for output in answer(query).outputs)
        case ReleaseQuery():
            return _computed(query.after)
        case PublicRowsQuery() | PreparedQuery():
            return _selected(query.plan.query)
        case PreparedRunningTotals():
            return _computed(query.after)
        case PreparedQueries():
            shown = None if query.together is None or query.last_step is not None else query.together.columns
            last = query.parts[-1].plan.query
            return _selected(last)[:shown] if query.after is None else _computed(query.after)
    return None


def _selected(query: Query) -> AnswerColumns:
    if query.after is not None:
        return _computed(query.after)
    counts = {each.name for each in query.aggregates if each.function not in _CHOSEN}
    noisy = {each.name for each in query.aggregates}
    columns = []
    for name, expression in query.select:
        exact = not mentioned(expression) & noisy or (isinstance(expression, Col) and expression.name in counts)
        # what is computed from noisy numbers, or chosen, is a real number even if each of them is a whole one
        kind = expression.kind if exact or expression.kind is not Kind.INTEGER else Kind.REAL
        columns.append((name, kind.value))
    return tuple(columns)


def _computed(after: After) -> AnswerColumns:
    outputs = after.outputs if after.replicas is None else after.outputs[:-1]  # the last one numbers the rows
    return tuple((name, kind_of(kind)) for name, kind in outputs)
