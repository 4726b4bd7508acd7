"""The text of a query → a syntax tree whose every node and argument is on the allow-list in `nodes.py`.

Every name, number and string of the text must also occur in the tree, because sqlglot drops words that it does not
understand. `lexer.py` checks the tokens first.
"""

import re
from functools import cache
from typing import NoReturn

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.tokenizer_core import Token, TokenType

from hubbub.core.asked import once
from hubbub.errors import QueryError
from hubbub.sql.generate import duckdb_sql
from hubbub.sql.lexer import WORDS, number_placeholders, reject_statement, tokenize
from hubbub.sql.nodes import CALLABLE, NODES, OPEN_STRUCTURE, Args
from hubbub.sql.spelling_dates import UNIT_WORDS
from hubbub.sql.spelling_tables import as_query
from hubbub.sql.spellings import DIALECTS, REWRITTEN, SPELLING_ARGS, SPELLING_NODES, rewrite
from hubbub.sql.text import SourceText, quote
from hubbub.sql.tokens import INSTEAD, TYPE_TOKENS

MAX_DEPTH = 120

_COMPARISONS = (
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.Is,
    exp.In,
    exp.Like,
    exp.ILike,
    exp.Between,
)
#: What may be read: the nodes that the binder knows, and their other spellings.
_ALLOWED = {**NODES, **SPELLING_NODES} | {node: NODES[node] | args for node, args in SPELLING_ARGS.items()}
#: Words that sqlglot stores as a property of a node, not as a node.
_ABSORBED = frozenset({"LAST", "NULLS", "WITHIN", "GROUPING", "SETS", "NEXT", "PRECISION"})
_NULLS = frozenset({"IGNORE", "RESPECT"})
_NULLS_NODES = (exp.IgnoreNulls, exp.RespectNulls)
#: Words of a window frame, which are properties of its node too.
_FRAME = frozenset({"UNBOUNDED", "PRECEDING", "FOLLOWING", "CURRENT", "GROUPS"})
_FORMAT_FUNCTIONS = (
    *("to_date", "to_timestamp", "parse_date", "parse_datetime", "parse_timestamp", "try_to_date", "strftime"),
    *("to_char", "to_varchar", "date_format", "format", "format_date", "format_timestamp", "format_datetime"),
)
#: Functions of which an argument is a unit of time.
_UNIT_FUNCTIONS = re.compile("(date|datetime|time|timestamp)_?(trunc|diff|part|add|sub)")


def parse(text: str, *, dialect: str = "duckdb", released: bool = False) -> tuple[exp.Expr, SourceText]:
    """Parse one SELECT statement, or a UNION of several, made of allowed nodes. Callers must not change the tree.

    With `released`, parts may read nothing but released or public rows: windows, set operations and all functions are
    parsed. Whoever passes it has to `check_nodes` of every part that reads private rows.
    """
    if dialect not in DIALECTS:
        raise QueryError("HB500", f"Unknown SQL dialect {quote(str(dialect))}.", f"Use one of: {', '.join(DIALECTS)}.")
    if not isinstance(text, str):
        raise QueryError("HB500", f"A query must be a string, not {type(text).__name__}.", "Pass the SQL text.")
    # once, because a text is bound, written to the ledger, and often queried again
    return once(
        ("parse", text, dialect, released), lambda: _parse(text, dialect, released=released), weigh=lambda _: len(text)
    )


def _parse(text: str, dialect: str, *, released: bool) -> tuple[exp.Expr, SourceText]:
    source = SourceText(text)
    reader = Dialect.get_or_raise(dialect)
    tokens = tokenize(source, reader)
    tree = as_query(_build_tree(source, reader, number_placeholders(source, tokens)))
    check_nodes(source, tree, released=released)
    _check_nothing_lost(source, tokens, tree, released=released)
    return rewrite(tree, dialect, source), source


def _build_tree(source: SourceText, reader: Dialect, tokens: list[Token]) -> exp.Expr:
    try:
        parsed = reader.parser(error_level=ErrorLevel.RAISE, max_errors=1).parse(tokens, source.text)
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        line, column = first.get("line"), first.get("col")
        raise QueryError(
            "HB501",
            f"SQL syntax error: {_printable(first.get('description'))}.",
            "Check the text just before this position.",
            (line, column) if line and column else None,
        ) from None
    except RecursionError:
        raise source.error(
            None, "HB500", "The query is nested too deeply.", "Move the inner parts into a WITH clause."
        ) from None
    except (ValueError, TypeError, AttributeError, KeyError, IndexError, AssertionError):
        # sqlglot does not expect hostile text; whatever it fails on is not a query that hubbub supports
        raise source.error(None, "HB501", "SQL syntax error.", "Check parentheses, commas and quotes.") from None
    statements = [statement for statement in parsed if statement is not None]
    if len(statements) != 1 or len(parsed) != 1:
        raise source.error(
            statements[1] if len(statements) > 1 else None,
            "HB502",
            f"The text contains {len(parsed)} statements; only one is allowed.",
            "Send each statement separately, without a semicolon.",
        )
    return statements[0]


def _printable(description: object) -> str:
    text = str(description or "unexpected word").rstrip(". ")
    return "".join(c for c in text[:120] if c.isprintable())


def check_nodes(source: SourceText, root: exp.Expr, *, released: bool = False) -> None:
    """Raise unless every node of a query, and every argument of a node, is on the allow-list."""
    if not isinstance(root, exp.SetOperation if released else exp.Union) and not isinstance(root, exp.Select):
        reject_statement(source, root, root.key.upper())
    stack: list[tuple[exp.Expr, int]] = [(root, 1)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise source.error(
                node,
                "HB500",
                f"This expression is nested more than {MAX_DEPTH} levels deep.",
                "Replace long chains of OR by IN (…), and move parts into a WITH clause.",
            )
        allowed = _allowed(node, released=released)
        if allowed is None:
            _reject_node(source, node)
        for name, value in node.args.items() if allowed is not _ANY else ():
            if value is None or value is False or value == []:
                continue
            values = allowed.get(name, ())
            if values is not None and value not in values:
                option = quote(name.strip("_").replace("_", " "))
                raise source.error(
                    value if isinstance(value, exp.Expr) else node,
                    "HB503",
                    f"{_node_name(node)} does not support the option {option}.",
                    "Remove the option.",
                )
        if isinstance(node, exp.Select | exp.Group) and not (node.expressions or node.args.get("all")):
            raise source.error(
                node, "HB501", f"{_node_name(node)} is empty.", "List the columns to select or to group by."
            )
        if isinstance(node, _COMPARISONS) and _is_chained(node):
            raise source.error(
                node,
                "HB501",
                "Chained comparisons are ambiguous: engines evaluate them in different orders.",
                "Add parentheses, as in (a = b) = c. With IS DISTINCT FROM, use = instead.",
            )
        step = 0 if isinstance(node, exp.And | exp.Or) and isinstance(node.parent, type(node)) else 1
        stack.extend((child, depth + step) for child in node.iter_expressions())


_ANY: Args = {}


def _allowed(node: exp.Expr, *, released: bool) -> Args | None:
    """Return the allowed arguments of a node, `_ANY` for all, or None if it is not allowed."""
    if released and type(node) in OPEN_STRUCTURE:
        return OPEN_STRUCTURE[type(node)]
    known = _ALLOWED.get(type(node))
    # what is rewritten keeps the arguments that its rewriting knows, so another one (a time zone) must not be dropped
    open_to_any = released and isinstance(node, exp.Func) and not isinstance(node, exp.Subquery)
    return _ANY if open_to_any and type(node) not in REWRITTEN else known


def _is_chained(node: exp.Expr) -> bool:
    """Tell whether a comparison is an operand of another one without parentheses.

    sqlglot adds parentheses of its own around the operands of IS DISTINCT FROM, so those do not count.
    """
    null_safe = isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ)
    operands = (
        child.unnest() if null_safe and isinstance(child, exp.Paren) else child for child in node.iter_expressions()
    )
    return any(isinstance(operand, (*_COMPARISONS, exp.Not)) for operand in operands)


def _reject_node(source: SourceText, node: exp.Expr) -> NoReturn:
    if isinstance(node, exp.Func | exp.Condition):
        raise unsupported_function(source, node, _node_name(node))
    raise source.error(
        node, "HB503", f"{_node_name(node)} is not supported.", "Remove it. docs/sql.md lists what a query can contain."
    )


def unsupported_function(source: SourceText, node: exp.Expr, name: str) -> QueryError:
    """Build the error for a function that is not on the allow-list."""
    return source.error(
        node,
        "HB504",
        f"The function {name} is not supported.",
        INSTEAD.get(name.strip("'").upper(), f"Use one of: {', '.join(CALLABLE)}. docs/sql.md describes them."),
    )


def _node_name(node: exp.Expr) -> str:
    name = node.name if isinstance(node, exp.Anonymous) else node.sql_name() if isinstance(node, exp.Func) else node.key
    return quote(name.upper())


def _literal(text: str) -> str:
    return exp.Literal.string(text).sql(dialect="duckdb")


def _check_nothing_lost(source: SourceText, tokens: list[Token], tree: exp.Expr, *, released: bool) -> None:
    """Check that every name, number and string of the text has a node: sqlglot did not understand what it dropped.

    Some functions rewrite a string, such as the format of a date; where they are allowed, it must then occur in the
    query as it is written for DuckDB.
    """
    kept = {start: node for node in tree.walk() if (start := node.meta.get("start")) is not None}
    around = zip([None, None, *tokens], [None, *tokens], tokens, [*tokens[1:], None], strict=False)
    written = cache(lambda: duckdb_sql(tree, source))
    calls: list[str] = []  # the words before the parentheses that are open
    for earlier, before, token, after in around:
        if token.token_type is TokenType.L_PAREN:
            calls.append(before.text.lower() if before else "")
        elif token.token_type is TokenType.R_PAREN and calls:
            calls.pop()
        if token.token_type is TokenType.STRING and isinstance(kept.get(token.start), exp.Identifier):
            raise source.error(
                token.start,
                "HB501",
                f"{quote(token.text)} is a string, but a name is expected here.",
                'Write names in double quotes ("name").',
            )
        if token.token_type not in WORDS or token.start in kept:
            continue
        kind, last = token.token_type, before.token_type if before else None
        absorbed = (
            # a function's name; $1; date_trunc('month', …); interval 3 day; extract(month from …); nulls last
            (kind is TokenType.VAR and after and after.token_type is TokenType.L_PAREN)
            or (kind is TokenType.NUMBER and last is TokenType.PARAMETER)
            # x[1], whose place sqlglot counts from 0
            or (kind is TokenType.NUMBER and last is TokenType.L_BRACKET and tree.find(exp.Bracket) is not None)
            or (
                kind in (TokenType.STRING, TokenType.VAR)
                and last in (TokenType.L_PAREN, TokenType.COMMA)
                and calls
                and _UNIT_FUNCTIONS.fullmatch(calls[-1])
                and (token.text.lower() in UNIT_WORDS or (kind is TokenType.STRING and last is TokenType.L_PAREN))
            )
            # the length of VARCHAR(10), which DuckDB ignores
            or (kind is TokenType.NUMBER and earlier and earlier.token_type in TYPE_TOKENS)
            # the format of a date, which sqlglot translates
            or (kind is TokenType.STRING and calls and calls[-1] in _FORMAT_FUNCTIONS)
            or last is TokenType.INTERVAL
            or (earlier and earlier.token_type is TokenType.INTERVAL and kind is TokenType.VAR)
            or (after and after.token_type is TokenType.FROM and last is TokenType.L_PAREN and kind is TokenType.VAR)
            or (kind is TokenType.VAR and token.text.upper() in _ABSORBED)
            or (kind is TokenType.VAR and token.text.upper() in _NULLS and tree.find(*_NULLS_NODES) is not None)
            or (kind is TokenType.STRING and released and _literal(token.text) in written())
            or (kind is TokenType.VAR and token.text.upper() in _FRAME and tree.find(exp.WindowSpec) is not None)
        )
        if not absorbed:
            raise source.error(token.start, "HB501", f"Unexpected {quote(token.text)}.", "Remove it.")
