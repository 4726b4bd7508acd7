"""Decide from the text of a query who answers it: the catalog, or the service; and write it for the service.

Tested in tests/gateway/test_route.py.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hubbub.errors import ParameterError
from hubbub.gateway.catalog.contents import known_tables
from hubbub.gateway.lexer import Token, significant, tokens

#: Limits of a text that is parsed here; the service has its own.
MAX_TEXT, MAX_NESTING, MAX_TOKENS = 100_000, 40, 10_000
_CATALOG_SCHEMAS = frozenset({"pg_catalog", "information_schema", "hubbub"})
_CATALOG = re.compile(r"\b(?:pg_catalog|information_schema|pg_[a-z_]+|hubbub\s*\.)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Route:
    """A query for the service as its text, or for the catalog as its tree."""

    sql: str
    tree: exp.Expr | None = None


def route(sql: str, datasets: Collection[str], database: str) -> Route:
    """Decide who answers a query."""
    listed = tokens(sql)
    words = significant(listed)
    if words[0].name == "call":
        return Route(sql)
    _check_size(sql, words)
    tree = _parse(sql)
    lower = {name.lower() for name in datasets}
    if tree is None:
        if _CATALOG.search(sql) and not any(token.name.lower() in lower for token in words):
            raise ParameterError(
                "HB810",
                "This question about the catalog cannot be read. Nothing was charged.",
                "Ask information_schema.tables, information_schema.columns, or hubbub.columns.",
            )
        return Route(_without_schema(sql, words, lower, database))
    about = _tables(tree, lower)
    if about == {"catalog", "data"}:
        raise ParameterError(
            "HB818",
            "A query cannot read the catalog and data at once. Nothing was charged.",
            "Ask the catalog first, and write its answer into the query.",
        )
    if about <= {"catalog"}:
        return Route(sql, tree)
    return Route(_without_schema(sql, words, lower, database))


def _check_size(sql: str, words: list[Token]) -> None:
    depth = deepest = 0
    for token in words:
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        deepest = max(deepest, depth)
    if len(sql) > MAX_TEXT or len(words) > MAX_TOKENS or deepest > MAX_NESTING:
        raise ParameterError(
            "HB809", "The query is too long or nested too deeply. Nothing was charged.", "Shorten the query."
        )


def _parse(sql: str) -> exp.Expr | None:
    try:
        tree = sqlglot.parse_one(sql, read="postgres")
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError, KeyError, IndexError, AssertionError):
        return None
    return tree if isinstance(tree, exp.Query | exp.Values) else None


def _tables(tree: exp.Expr, datasets: Collection[str]) -> set[str]:
    """Tell whether a query reads the catalog, data, or both; nothing if it reads no table."""
    common = {each.alias.lower() for each in tree.find_all(exp.CTE)}
    about = set()
    for node in tree.find_all(exp.Table):
        schema, name = node.text("db").lower(), node.name.lower()
        if not isinstance(node.this, exp.Identifier):
            if isinstance(node.this, exp.Anonymous) and node.this.name.lower() == "release":
                about.add("data")
            continue
        if not schema and name in common:
            continue
        known = f"pg_catalog.{name}" in known_tables() and name not in datasets
        about.add("catalog" if schema in _CATALOG_SCHEMAS or (not schema and known) else "data")
    return about


def _without_schema(sql: str, words: list[Token], datasets: Collection[str], database: str) -> str:
    """Replace `public.` before the name of a dataset by blanks, so that positions in the text stay the same.

    >>> from hubbub.gateway.lexer import significant, tokens
    >>> text = 'SELECT COUNT(*) FROM "public"."visits"'
    >>> _without_schema(text, significant(tokens(text)), {"visits"}, "hubbub")
    'SELECT COUNT(*) FROM          "visits"'
    """
    text = list(sql)
    for place, token in enumerate(words[:-2]):
        dot, after = words[place + 1], words[place + 2]
        if token.name != "public" or dot.text != "." or after.name.lower() not in datasets:
            continue
        first = token
        if place >= 2 and words[place - 1].text == "." and words[place - 2].name == database:
            first = words[place - 2]
        text[first.start : after.start] = " " * (after.start - first.start)
    return "".join(text)
