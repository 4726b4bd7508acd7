"""From a receipt back to the question that was asked, and to its plan as it would be made now."""

import ast
import datetime
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from hubbub.analyses.base import Setting
from hubbub.analyses.registry import OWN, Called, prepare
from hubbub.core import call as calls
from hubbub.core.schema import Table, Value
from hubbub.core.unit import Hash
from hubbub.curator.question import Question
from hubbub.errors import AuditError
from hubbub.sql.bind import bind
from hubbub.sql.bounding import Words
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.plan import Plan, plan

_SAID = re.compile(r"\$\d+ = |groups = |rows = |weight of (.+?) = |raw")
_DATES = {"date": datetime.date, "datetime": datetime.datetime}


def question(paper: Mapping[str, Any]) -> Question:
    """Read a question from its receipt, at the price that was paid.

    >>> asked = question({"query": "SELECT COUNT(*) FROM t WHERE a = $1 -- $1 = 'x, y', rows = 2", "bounds": None,
    ...                   "charge": {"epsilon": "1/10", "delta": "0"}})
    >>> asked.sql, asked.parameters, asked.rows, asked.epsilon
    ('SELECT COUNT(*) FROM t WHERE a = $1', ('x, y',), 2, Fraction(1, 10))
    """
    text, parameters, weights, options = _split(paper["query"])
    bounds = paper["bounds"] if "analysis" in paper else None
    if bounds is not None:  # what an analysis was told of bounds stands in its receipt alone
        options = {"groups": bounds["groups"], "rows": bounds["rows"]}
    return Question(
        text,
        epsilon=Fraction(paper["charge"]["epsilon"]),
        delta=Fraction(paper["charge"]["delta"]),
        parameters=parameters,
        weights=weights,
        **options,
    )


def planned(asked: Question, tables: Mapping[str, Table], *, salt: str, hashing: Hash) -> Plan | Called:
    """Plan a question from declarations alone, in DuckDB's words."""
    words, delta = Words(salt, hashing, DUCKDB), asked.allowed(Fraction(0))
    if calls.is_call(asked.sql):
        call = calls.read(asked.sql)
        if call.name in OWN:
            raise AuditError(
                "HB634",
                "this release ran code that was handed in, and the ledger does not hold it.",
                "Its charge can be checked from the receipt, its sensitivity only where the code is.",
            )
        return prepare(call, Setting(tables, asked.price(), delta, words, asked.groups, asked.rows))
    query = bind(asked.sql, tables=tables, parameters=asked.values(), dialect=asked.dialect)
    return plan(
        query,
        epsilon=asked.price(),
        delta=delta,
        salt=words.salt,
        hashing=words.hashing,
        dialect=words.dialect,
        **asked.shape(query),
    )


def _split(text: str) -> tuple[str, tuple[Value, ...], dict[str, Fraction], dict[str, Any]]:
    """Take apart what `Question.text` put together; a dash in a literal is no end of the SQL."""
    for found in re.finditer(" -- ", text):
        said = _read(text[found.end() :])
        if said is not None:
            return text[: found.start()], *said
    return text, (), {}, {}


def _read(said: str) -> tuple[tuple[Value, ...], dict[str, Fraction], dict[str, Any]] | None:
    parameters: list[Value] = []
    weights: dict[str, Fraction] = {}
    options: dict[str, Any] = {}
    while said:
        head = _SAID.match(said)
        if head is None:
            return None
        said = said[head.end() :]
        if head[0] == "raw":
            options["raw"] = True
            said = said.removeprefix(", ")
            continue
        value, said = _value(said)
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
    """Read one value from the front: the shortest text up to a comma, or all of it, that is one."""
    ends = [found.start() for found in re.finditer(", ", text)]
    for end in [*ends, len(text)]:
        value = _literal(text[:end])
        if value is not None:
            return value, text[end + 2 :]
    return None, ""


def _literal(text: str) -> Value | None:
    """Read a value as Python writes it, and run nothing."""
    try:
        tree = ast.parse(text, mode="eval").body
        match tree:
            case ast.Call(ast.Name("Fraction"), [top, bottom]):
                return Fraction(ast.literal_eval(top), ast.literal_eval(bottom))
            case ast.Call(ast.Attribute(ast.Name("datetime"), name), arguments) if name in _DATES:
                return _DATES[name](*map(ast.literal_eval, arguments))
            case ast.BinOp(left, ast.Div(), right):  # a weight of 1/3
                return Fraction(ast.literal_eval(left), ast.literal_eval(right))
        found = ast.literal_eval(tree)
    except (SyntaxError, ValueError, TypeError, ZeroDivisionError, MemoryError, RecursionError):
        return None
    return found if isinstance(found, bool | int | str) else None
