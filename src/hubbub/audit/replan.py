"""Read the query of a receipt, and plan it again with the current declarations."""

import ast
import datetime
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from hubbub.analyses.base import PreparedAnalysis, Setting
from hubbub.analyses.binomial_count import SHARE
from hubbub.analyses.registry import USER_FUNCTIONS, prepare
from hubbub.core import call as calls
from hubbub.core.matrix_threads import one_matrix_thread
from hubbub.core.schema import Table, Value
from hubbub.core.unit import Hash
from hubbub.curator.batch import is_batch, prepare_batch
from hubbub.curator.queries import prepare_queries
from hubbub.curator.query import prepare_query
from hubbub.curator.question import Question
from hubbub.curator.running_totals import running_totals
from hubbub.errors import AuditError
from hubbub.sql.bind import bind_releases
from hubbub.sql.blocks import within_blocks
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.query import Queries
from hubbub.sql.release_size import MAX_CELLS

_OPTION = re.compile(r"\$\d+ = |groups = |rows = |noise = |weight of (.+?) = |raw")
_DATES = {"date": datetime.date, "datetime": datetime.datetime}


def question_of(paper: Mapping[str, Any]) -> Question:
    """Read the query of a receipt, at the privacy cost that was charged.

    >>> question = question_of({"query": "SELECT COUNT(*) FROM t WHERE a = $1 -- $1 = 'x, y', rows = 2", "bounds": None,
    ...                         "charge": {"epsilon": "1/10", "delta": "0"}})
    >>> question.sql, question.parameters, question.rows, question.epsilon
    ('SELECT COUNT(*) FROM t WHERE a = $1', ('x, y',), 2, Fraction(1, 10))
    """
    text, parameters, weights, options = _split(paper["query"])
    bounds = paper["bounds"] if "analysis" in paper else None
    if bounds is not None:  # the bounds of an analysis are only in its receipt
        options = {"groups": bounds["groups"], "rows": bounds["rows"]}
    # binomial noise charges a share of the δ that it may use
    share = SHARE if paper.get("analysis") == "binomial_count" else 1
    return Question(
        text,
        epsilon=Fraction(paper["charge"]["epsilon"]),
        delta=Fraction(paper["charge"]["delta"]) / share,
        parameters=parameters,
        weights=weights,
        **options,
    )


@one_matrix_thread()
def plan_again(
    question: Question, tables: Mapping[str, Table], *, salt: str, hashing: Hash, totals: bool = False
) -> PreparedAnalysis:
    """Plan a query from the declarations alone, rendered for DuckDB; `totals` says that its receipt has chosen sums."""
    rendering, delta = RenderOptions(salt, hashing, DUCKDB), question.allowed_delta(Fraction(0))
    if calls.is_call(question.sql):
        call = calls.parse_call(question.sql)
        if call.name in USER_FUNCTIONS:
            raise AuditError(
                "HB634",
                "This release used a user-defined function, which the ledger does not contain.",
                "Verify its charge from the receipt; only the owner of the code can check its sensitivity.",
            )
        if is_batch(question.sql):
            return prepare_batch(
                call,
                tables,
                lambda _: rendering,
                lambda _, selects: question.allowed_delta(Fraction(0), selects_groups=selects),
                epsilon=question.requested_epsilon(),
                most=MAX_CELLS,
            )
        return prepare(
            call, Setting(tables, question.requested_epsilon(), delta, rendering, question.groups, question.rows)
        )
    bound = bind_releases(question.sql, tables=tables, parameters=question.values(), dialect=question.dialect)
    query = within_blocks(bound)
    epsilon = question.requested_epsilon()
    if isinstance(query, Queries):
        return prepare_queries(
            query,
            question,
            lambda _: rendering,
            epsilon=epsilon,
            delta=delta,
            most=MAX_CELLS,
            noise=question.known_noise,
        )
    planned = prepare_query(query, question, rendering, epsilon=epsilon, delta=delta, noise=question.known_noise)
    return running_totals(planned, question, rendering, delta=delta) if totals else planned


def _split(text: str) -> tuple[str, tuple[Value, ...], dict[str, Fraction], dict[str, Any]]:
    """Split the text of `Question.text` into SQL and options; dashes inside a literal do not end the SQL."""
    for dashes in re.finditer(" -- ", text):
        options = _read(text[dashes.end() :])
        if options is not None:
            return text[: dashes.start()], *options
    return text, (), {}, {}


def _read(text: str) -> tuple[tuple[Value, ...], dict[str, Fraction], dict[str, Any]] | None:
    parameters: list[Value] = []
    weights: dict[str, Fraction] = {}
    options: dict[str, Any] = {}
    while text:
        head = _OPTION.match(text)
        if head is None:
            return None
        text = text[head.end() :]
        if head[0] == "raw":
            options["raw"] = True
            text = text.removeprefix(", ")
            continue
        value, text = _value(text)
        if value is None:
            return None
        if head[0].startswith("$"):
            parameters.append(value)
        elif head[1] is not None:
            weights[head[1]] = Fraction(value)  # type: ignore[arg-type]
        else:
            options[head[0][:-3]] = value
    return tuple(parameters), weights, options


def _value(text: str) -> tuple[Value | None, str]:
    """Read a value from the front: the shortest text before a comma, or the whole text, that is a literal."""
    ends = [comma.start() for comma in re.finditer(", ", text)]
    for end in [*ends, len(text)]:
        value = _literal(text[:end])
        if value is not None:
            return value, text[end + 2 :]
    return None, ""


def _literal(text: str) -> Value | None:
    """Read a Python literal without evaluating code."""
    try:
        tree = ast.parse(text, mode="eval").body
        match tree:
            case ast.Call(ast.Name("Fraction"), [top, bottom]):
                return Fraction(ast.literal_eval(top), ast.literal_eval(bottom))
            case ast.Call(ast.Attribute(ast.Name("datetime"), name), arguments) if name in _DATES:
                return _DATES[name](*map(ast.literal_eval, arguments))
            case ast.BinOp(left, ast.Div(), right):  # a weight of 1/3
                return Fraction(ast.literal_eval(left), ast.literal_eval(right))
        value = ast.literal_eval(tree)
    except (SyntaxError, ValueError, TypeError, ZeroDivisionError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, bool | int | str) else None
