"""The text of a query → a syntax tree whose every node and argument is on the allow-list in `nodes.py`.

Every name, number and string of the text must also occur in the tree, because sqlglot drops words that it does not
understand. `lexer.py` checks the tokens first.
"""

from functools import lru_cache
from typing import NoReturn

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.tokenizer_core import Token, TokenType

from hubbub.errors import QueryError
from hubbub.sql.lexer import WORDS, number_placeholders, reject_statement, tokenize
from hubbub.sql.nodes import CALLABLE, NODES
from hubbub.sql.text import SourceText, quote

MAX_DEPTH = 120
DIALECTS = ("duckdb", "postgres")

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
#: Words that sqlglot stores as a property of a node, not as a node.
_ABSORBED = frozenset({"LAST", "NULLS", "WITHIN", "GROUPING", "SETS", "NEXT", "PRECISION"})
#: Functions whose first argument is a unit of time.
_UNIT_FIRST = frozenset({"date_trunc", "datetrunc", "date_diff", "datediff", "date_part"})


def parse(text: str, *, dialect: str = "duckdb") -> tuple[exp.Expr, SourceText]:
    """Parse one SELECT statement, or a UNION of several, made of allowed nodes. Callers must not change the tree."""
    if dialect not in DIALECTS:
        raise QueryError("HB500", f"Unknown SQL dialect {quote(str(dialect))}.", f"Use one of: {', '.join(DIALECTS)}.")
    if not isinstance(text, str):
        raise QueryError("HB500", f"A query must be a string, not {type(text).__name__}.", "Pass the SQL text.")
    return _parse(text, dialect)


@lru_cache(maxsize=64)
def _parse(text: str, dialect: str) -> tuple[exp.Expr, SourceText]:
    """Parse a text once, because it is bound, written to the ledger, and often queried again."""
    source = SourceText(text)
    reader = Dialect.get_or_raise(dialect)
    tokens = tokenize(source, reader)
    tree = _build_tree(source, reader, number_placeholders(source, tokens))
    _check_nodes(source, tree)
    _check_nothing_lost(source, tokens, tree)
    return tree, source


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


def _check_nodes(source: SourceText, root: exp.Expr) -> None:
    if not isinstance(root, exp.Select | exp.Union):
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
        allowed = NODES.get(type(node))
        if allowed is None:
            _reject_node(source, node)
        for name, value in node.args.items():
            if value is None or value is False or value == []:
                continue
            values = allowed.get(name, ())
            if values is not None and value not in values:
                option = quote(name.strip("_").replace("_", " "))
                raise source.error(
                    node,
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
    if isinstance(node, exp.Window):
        raise source.error(
            node,
            "HB503",
            "Window functions are not supported: they make one person's result depend on other people's rows.",
            "Use GROUP BY. For one value per person, use a subquery that groups by the privacy ID column.",
        )
    if isinstance(node, exp.Func | exp.Condition):
        raise unsupported_function(source, node, _node_name(node))
    raise source.error(node, "HB503", f"{_node_name(node)} is not supported.", "Remove it.")


def unsupported_function(source: SourceText, node: exp.Expr, name: str) -> QueryError:
    """Build the error for a function that is not on the allow-list."""
    return source.error(
        node,
        "HB504",
        f"The function {name} is not supported.",
        f"Use one of: {', '.join(CALLABLE)}.",
    )


def _node_name(node: exp.Expr) -> str:
    name = node.name if isinstance(node, exp.Anonymous) else node.sql_name() if isinstance(node, exp.Func) else node.key
    return quote(name.upper())


def _check_nothing_lost(source: SourceText, tokens: list[Token], tree: exp.Expr) -> None:
    """Check that every name, number and string of the text has a node: sqlglot did not understand what it dropped."""
    kept = {start: node for node in tree.walk() if (start := node.meta.get("start")) is not None}
    around = zip([None, None, *tokens], [None, *tokens], tokens, [*tokens[1:], None], strict=False)
    for earlier, before, token, after in around:
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
            or (
                kind is TokenType.STRING
                and last is TokenType.L_PAREN
                and earlier
                and earlier.text.lower() in _UNIT_FIRST
            )
            or last is TokenType.INTERVAL
            or (earlier and earlier.token_type is TokenType.INTERVAL and kind is TokenType.VAR)
            or (after and after.token_type is TokenType.FROM and last is TokenType.L_PAREN and kind is TokenType.VAR)
            or (kind is TokenType.VAR and token.text.upper() in _ABSORBED)
        )
        if not absorbed:
            raise source.error(token.start, "HB501", f"Unexpected {quote(token.text)}.", "Remove it.")
