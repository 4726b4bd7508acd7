"""The analyst's text → one syntax tree whose every node and argument is on the allow-list, or a refusal with its place.

sqlglot reads more than we mean to answer, drops words it does not know what to do with, and recurses. So the text is
weighed first (characters, length, tokens, nesting), each kind of token must be on a list, every node and each of its
arguments must be in `nodes.NODES`, and every name, number and string of the text must be found again in the tree.
"""

import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import NoReturn

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from hubbub.errors import QueryError
from hubbub.sql.nodes import COMMANDS, NODES, PLAIN_NAMES, REASONS, TOKENS, TYPE_TOKENS

MAX_TEXT = 100_000
MAX_TOKENS = 10_000
MAX_NESTING = 24
MAX_DEPTH = 120
DIALECTS = ("duckdb", "postgres")

_OPEN_SIGNS = (TokenType.L_PAREN, TokenType.CASE, TokenType.L_BRACKET)
_CLOSE_SIGNS = (TokenType.R_PAREN, TokenType.END, TokenType.R_BRACKET)
_OPEN, _CLOSE = set(_OPEN_SIGNS), set(_CLOSE_SIGNS)
_WORDS = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER}
_NAMES = {TokenType.VAR, TokenType.IDENTIFIER}
_QUERY = {TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN, TokenType.FROM}
_OPERATORS = {
    TokenType.PLUS,
    TokenType.DASH,
    TokenType.STAR,
    TokenType.SLASH,
    TokenType.DIV,
    TokenType.MOD,
    TokenType.CARET,
    TokenType.DSTAR,
    TokenType.EQ,
    TokenType.NEQ,
    TokenType.LT,
    TokenType.LTE,
    TokenType.GT,
    TokenType.GTE,
    TokenType.DPIPE,
    TokenType.BETWEEN,
    TokenType.LIKE,
    TokenType.ILIKE,
    TokenType.AND,
    TokenType.OR,
    TokenType.NOT,
}
_VALUES = _CLOSE | {TokenType.NUMBER, TokenType.STRING, TokenType.NULL, TokenType.TRUE, TokenType.FALSE}
_BEFORE_DISTINCT = {TokenType.SELECT, TokenType.L_PAREN, TokenType.IS, TokenType.NOT}
_BEFORE_ALL = {TokenType.UNION, TokenType.GROUP_BY, TokenType.SELECT}
#: Signs that stand between two things. (A minus may stand before one.)
_BETWEEN = (_OPERATORS | {TokenType.COMMA, TokenType.ALIAS}) - {TokenType.DASH, TokenType.NOT, TokenType.STAR}
#: After these something begins.
_BEGINS = (
    _OPERATORS
    | _BEFORE_ALL
    | {
        TokenType.L_PAREN,
        TokenType.L_BRACKET,
        TokenType.COMMA,
        TokenType.DISTINCT,
        TokenType.WHERE,
        TokenType.ORDER_BY,
        TokenType.HAVING,
        TokenType.ON,
        TokenType.FROM,
        TokenType.WHEN,
        TokenType.THEN,
        TokenType.ELSE,
        TokenType.IN,
        TokenType.LIMIT,
        TokenType.ALL,
    }
)
#: Before these something must have ended.
_ENDS = _CLOSE | {
    TokenType.COMMA,
    TokenType.FROM,
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.ORDER_BY,
    TokenType.LIMIT,
    TokenType.UNION,
    TokenType.JOIN,
    TokenType.ON,
    TokenType.USING,
    TokenType.INNER,
    TokenType.FETCH,
    TokenType.OFFSET,
    TokenType.WHEN,
    TokenType.THEN,
    TokenType.ELSE,
}
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
#: Layout is written with these alone; other controls, format characters and odd blanks hide text from a reader.
_LAYOUT = "\t\n\r "


def quote(text: str) -> str:
    """Show an analyst's own words in a message, in bounded length and without surprises.

    >>> quote("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…'"
    """
    shown = text if len(text) <= 40 else text[:40] + "…"
    return "'" + "".join(c if c.isprintable() else "�" for c in shown) + "'"


class Text:
    """A query's text, which can say where something in it stands."""

    def __init__(self, text: str) -> None:
        self.text = text

    def position(self, place: exp.Expr | int | None) -> tuple[int, int] | None:
        """Give line and column of an offset, or of the first word of a node."""
        offset = self.offset(place) if isinstance(place, exp.Expr) else place
        if offset is None:
            return None
        before = self.text[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1

    @staticmethod
    def offset(node: exp.Expr) -> int | None:
        """Give where a node begins: the first place known of it and of what is in it, or else of what it is in."""
        current: exp.Expr | None = node
        while current is not None:
            known = [start for n in current.walk() if (start := n.meta.get("start")) is not None]
            if known:
                return int(min(known))
            current = current.parent
        return None

    def refusal(self, place: exp.Expr | int | None, code: str, reason: str, remedy: str) -> QueryError:
        """Say what is refused, where it stands, and what to write instead."""
        return QueryError(code, reason, remedy, self.position(place))


def parse(text: str, *, dialect: str = "duckdb") -> tuple[exp.Expr, Text]:
    """Read one SELECT statement (or a UNION of some) made of allowed nodes alone. Nobody may change the tree."""
    if dialect not in DIALECTS:
        raise QueryError("HB500", f"SQL is read as {' or '.join(DIALECTS)}, not {quote(str(dialect))}.", "Choose one.")
    if not isinstance(text, str):
        raise QueryError("HB500", f"A query is a string, not {type(text).__name__}.", "Give the SQL text.")
    return _parsed(text, dialect)


@lru_cache(maxsize=64)
def _parsed(text: str, dialect: str) -> tuple[exp.Expr, Text]:
    """Read a text once: it is bound, written into the ledger, and often asked again."""
    source = Text(text)
    _characters(source)
    reader = Dialect.get_or_raise(dialect)
    try:
        tokens = reader.tokenize(text)
    except TokenError:
        raise source.refusal(
            None, "HB501", "The text cannot be cut into words: a quote or comment is left open.", "Close it."
        ) from None
    tokens = _named(tokens)
    _tokens(source, tokens)
    _neighbors(source, tokens)
    tree = _tree(source, reader, _numbered(source, tokens))
    _shape(source, tree)
    _nothing_lost(source, tokens, tree)
    return tree, source


def _characters(source: Text) -> None:
    text = source.text
    if not text.strip(_LAYOUT):
        raise source.refusal(None, "HB500", "The query is empty.", "Write SELECT … FROM … .")
    if len(text) > MAX_TEXT:
        raise source.refusal(
            None, "HB500", f"The query has {len(text)} characters; at most {MAX_TEXT} are read.", "Shorten it."
        )
    if text.isascii() and text.isprintable():
        return
    for offset, char in enumerate(text):
        if char not in _LAYOUT and unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"}:
            raise source.refusal(
                offset,
                "HB500",
                f"The character U+{ord(char):04X} is not shown, so it could hide text.",
                "Remove it; inside a string, pass the string as a parameter.",
            )


def _named(tokens: list[Token]) -> list[Token]:
    """Take words such as percent or index for names; LIMIT 10 PERCENT is the one clause where one is not."""
    before = [None, *(token.token_type for token in tokens)]
    return [
        Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end)
        if token.token_type in PLAIN_NAMES and last is not TokenType.NUMBER
        else token
        for token, last in zip(tokens, before, strict=False)
    ]


def _tokens(source: Text, tokens: list[Token]) -> None:
    if len(tokens) > MAX_TOKENS:
        raise source.refusal(
            None, "HB500", f"The query has {len(tokens)} words; at most {MAX_TOKENS} are read.", "Shorten it."
        )
    if source.text.find("/*+") >= 0 or source.text.find("/*!") >= 0:
        place = max(source.text.find("/*+"), source.text.find("/*!"))
        raise source.refusal(
            place, "HB503", "A comment that some engines would run (/*+ or /*!) is refused.", "Remove it."
        )
    depth = 0
    for token in tokens:
        kind = token.token_type
        if kind in COMMANDS:
            _not_a_question(source, token.start, token.text)
        if kind not in TOKENS:
            reason, remedy = REASONS.get(kind, ("is not part of the SQL that is answered", ""))
            raise source.refusal(
                token.start,
                "HB503",
                f"{quote(token.text)} {reason}.",
                remedy or 'Leave it out; if it is the name of a column or table, write it in double quotes ("name").',
            )
        depth += (kind in _OPEN) - (kind in _CLOSE)
        if depth > MAX_NESTING:
            raise source.refusal(
                token.start,
                "HB500",
                f"Brackets, sub-queries or CASE are nested more than {MAX_NESTING} deep here.",
                "Name the inner parts in a WITH clause.",
            )
    for opens, closes in zip(_OPEN_SIGNS, _CLOSE_SIGNS, strict=True):
        kinds = [t.token_type for t in tokens]
        if kinds.count(opens) != kinds.count(closes):
            raise source.refusal(None, "HB501", "Brackets, or CASE and END, do not match.", "Close what is open.")


def _neighbors(source: Text, tokens: list[Token]) -> None:
    """Refuse words beside each other that the reader would make something of, and an engine would not."""
    if tokens and tokens[0].token_type not in (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN, TokenType.FROM):
        raise source.refusal(
            tokens[0].start, "HB501", "A query begins with SELECT or WITH.", "Remove what is before it."
        )
    whens = [t.start for t in tokens if t.token_type is TokenType.WHEN]
    if len(whens) != sum(t.token_type is TokenType.THEN for t in tokens):
        raise source.refusal(
            whens[0] if whens else None, "HB501", "Not every WHEN has its THEN.", "Write WHEN … THEN … ."
        )
    for place, token in enumerate(tokens):
        if token.token_type is TokenType.BETWEEN and not _has_and(tokens[place + 1 :]):
            raise source.refusal(token.start, "HB501", "BETWEEN has no AND.", "Write x BETWEEN low AND high.")
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        kind = token.token_type
        first, last = (None if t is None else t.token_type for t in (before, after))
        touching = before is not None and before.end + 1 == token.start
        wrong = next((reason for reason, rule in _ODD if rule(first, kind, last, touching)), "")
        if wrong:
            raise source.refusal(token.start, "HB501", f"{wrong}.", "Check the words around this place.")
        if kind is TokenType.STRING and (
            first is TokenType.JOIN or (first is TokenType.FROM and _is_clause(source, before))
        ):
            raise source.refusal(
                token.start,
                "HB505",
                "A string after FROM would name a file, and files cannot be read.",
                "Name a declared table, in double quotes if need be.",
            )


def _is_clause(source: Text, token: Token | None) -> bool:
    """Say whether a FROM is the clause, and not the end of IS DISTINCT FROM."""
    return token is not None and not source.text[: token.start].rstrip(_LAYOUT).lower().endswith("distinct")


def _numbered(source: Text, tokens: list[Token]) -> list[Token]:
    """Write each ? as $1, $2, … in the order of the text, for the tree does not keep that order."""
    marks = [token for token in tokens if token.token_type is TokenType.PLACEHOLDER]
    if marks and any(token.token_type is TokenType.PARAMETER for token in tokens):
        raise source.refusal(marks[0].start, "HB509", "Both ? and $1 are used for parameters.", "Use one of them.")
    found = list[Token]()
    for token in tokens:
        if token.token_type is TokenType.PLACEHOLDER:
            at = (token.line, token.col, token.start, token.end)
            found.append(Token(TokenType.PARAMETER, "$", *at))
            found.append(Token(TokenType.NUMBER, str(marks.index(token) + 1), *at))
        else:
            found.append(token)
    return found


def _has_and(tokens: list[Token]) -> bool:
    """Say whether what follows a BETWEEN is one operand and an AND."""
    depth, last = 0, None
    for token in tokens:
        kind = token.token_type
        depth += (kind in _OPEN) - (kind in _CLOSE)
        if depth == 0 and kind is TokenType.AND:
            return True
        if depth < 0 or (depth == 0 and (kind in _ENDS - _CLOSE or (kind in _WORDS and last in _WORDS))):
            return False
        # the unit of an interval stands beside its number
        last = None if last is TokenType.INTERVAL else kind
    return False


Neighbor = TokenType | None

#: What is odd about a word, by the kinds of the one before, itself and the one after, and whether it touches the one
#: before. Each of these was seen to be read by the reader as something else, or to be dropped.
_ODD: tuple[tuple[str, Callable[[Neighbor, TokenType, Neighbor, bool], bool]], ...] = (
    # 0x1F would be read as 0 with the alias x1F
    ("Two words run into each other here", lambda a, b, _, touching: touching and a in _WORDS and b in _WORDS),
    ("There is nothing before this sign", lambda a, b, *_: b in _BETWEEN and (a is None or a in _BEGINS)),
    (
        "There is nothing after this sign",
        lambda a, b, c, _: b in _OPERATORS and not _star(a, b) and (c is None or c in _ENDS),
    ),
    ("There is nothing between these two", lambda a, b, *_: a in _VALUES and b is TokenType.NUMBER),
    ("There is nothing after this comma", lambda _, b, c, __: b is TokenType.COMMA and c in _CLOSE | {TokenType.JOIN}),
    ("ALL has no meaning at this place", lambda a, b, *_: b is TokenType.ALL and a not in _BEFORE_ALL),
    ("DISTINCT has no meaning at this place", lambda a, b, *_: b is TokenType.DISTINCT and a not in _BEFORE_DISTINCT),
    ("A type stands before a number here", lambda _, b, c, __: b in TYPE_TOKENS and c is TokenType.NUMBER),
    (
        "AS is missing here, or a name",
        lambda a, b, c, _: (
            b is TokenType.L_PAREN
            and ((a in _NAMES and c is TokenType.SELECT) or (a is TokenType.ALIAS and c not in _QUERY))
        ),
    ),
)


def _star(before: Neighbor, kind: TokenType) -> bool:
    """Say whether a star stands for columns, and not for a product."""
    return kind is TokenType.STAR and (before in _BEGINS or before is TokenType.DOT)


def _not_a_question(source: Text, place: exp.Expr | int | None, word: str) -> NoReturn:
    raise source.refusal(
        place,
        "HB502",
        f"{quote(word)} is not a question about the data: only SELECT is answered.",
        "Ask with SELECT … FROM … GROUP BY …; what may be changed is changed by the owner, in hubbub.yaml.",
    )


def _tree(source: Text, reader: Dialect, tokens: list[Token]) -> exp.Expr:
    try:
        found = reader.parser(error_level=ErrorLevel.RAISE, max_errors=1).parse(tokens, source.text)
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        line, column = first.get("line"), first.get("col")
        raise QueryError(
            "HB501",
            f"The text is not SQL that can be read: {_plain(first.get('description'))}.",
            "Check the words before this place.",
            (line, column) if line and column else None,
        ) from None
    except RecursionError:
        raise source.refusal(
            None, "HB500", "The query is nested too deeply to be read.", "Name inner parts in a WITH clause."
        ) from None
    except (ValueError, TypeError, AttributeError, KeyError, IndexError, AssertionError):
        # sqlglot is not made for hostile text; whatever it stumbles over is no query of ours
        raise source.refusal(
            None, "HB501", "The text is not SQL that can be read.", "Check brackets, commas and quotes."
        ) from None
    statements = [statement for statement in found if statement is not None]
    if len(statements) != 1 or len(found) != 1:
        raise source.refusal(
            statements[1] if len(statements) > 1 else None,
            "HB502",
            f"{len(found)} statements are in the text; one is answered at a time.",
            "Send each by itself, without a semicolon.",
        )
    return statements[0]


def _plain(description: object) -> str:
    text = str(description or "a word is not where it should be").rstrip(". ")
    return "".join(c for c in text[:120] if c.isprintable())


def _shape(source: Text, root: exp.Expr) -> None:
    if not isinstance(root, exp.Select | exp.Union):
        _not_a_question(source, root, root.key.upper())
    stack: list[tuple[exp.Expr, int]] = [(root, 1)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise source.refusal(
                node,
                "HB500",
                f"This expression is more than {MAX_DEPTH} steps deep.",
                "Write long chains of OR as IN (…), and name parts in a WITH clause.",
            )
        allowed = NODES.get(type(node))
        if allowed is None:
            _unknown_node(source, node)
        for name, value in node.args.items():
            if value is None or value is False or value == []:
                continue
            pinned = allowed.get(name, ())
            if pinned is not None and value not in pinned:
                raise source.refusal(
                    node,
                    "HB503",
                    f"{_called(node)} with {quote(name.strip('_').replace('_', ' '))} is not answered.",
                    "Leave that option out.",
                )
        if isinstance(node, exp.Select | exp.Group) and not (node.expressions or node.args.get("all")):
            raise source.refusal(
                node, "HB501", f"{_called(node)} is empty.", "Write what is to be selected or grouped by."
            )
        if isinstance(node, _COMPARISONS) and _chained(node):
            raise source.refusal(
                node,
                "HB501",
                "A comparison of comparisons is read differently by different engines.",
                "Put brackets around the inner one, as in (a = b) = c; with IS DISTINCT FROM, use = instead.",
            )
        step = 0 if isinstance(node, exp.And | exp.Or) and isinstance(node.parent, type(node)) else 1
        stack.extend((child, depth + step) for child in node.iter_expressions())


def _chained(node: exp.Expr) -> bool:
    """Say whether a comparison is compared without brackets. Those around IS DISTINCT FROM may be the reader's own."""
    own = isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ)
    inner = (child.unnest() if own and isinstance(child, exp.Paren) else child for child in node.iter_expressions())
    return any(isinstance(child, (*_COMPARISONS, exp.Not)) for child in inner)


def _unknown_node(source: Text, node: exp.Expr) -> NoReturn:
    if isinstance(node, exp.Window):
        raise source.refusal(
            node,
            "HB503",
            "A window function lets one person's row depend on other people's rows.",
            "Use GROUP BY; for a value per person, a sub-query grouped by the unit.",
        )
    if isinstance(node, exp.Func | exp.Condition):
        raise source.refusal(
            node,
            "HB504",
            f"{_called(node)} is not on the list of functions.",
            "The list is in the manual; every function on it gives an answer or NULL on any value, never an error.",
        )
    raise source.refusal(node, "HB503", f"{_called(node)} is not part of the SQL that is answered.", "Leave it out.")


def _called(node: exp.Expr) -> str:
    name = node.name if isinstance(node, exp.Anonymous) else node.sql_name() if isinstance(node, exp.Func) else node.key
    return quote(name.upper())


def _nothing_lost(source: Text, tokens: list[Token], tree: exp.Expr) -> None:
    """Every name, number and string of the text has its node: what the reader dropped was not understood."""
    kept = {start: node for node in tree.walk() if (start := node.meta.get("start")) is not None}
    around = zip([None, None, *tokens], [None, *tokens], tokens, [*tokens[1:], None], strict=False)
    for earlier, before, token, after in around:
        if token.token_type is TokenType.STRING and isinstance(kept.get(token.start), exp.Identifier):
            reason = f"{quote(token.text)} is a string in the place of a name."
            raise source.refusal(token.start, "HB501", reason, 'Write names in double quotes ("name").')
        if token.token_type not in _WORDS or token.start in kept:
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
            raise source.refusal(
                token.start, "HB501", f"{quote(token.text)} has no meaning at this place.", "Leave it out."
            )


#: Words that the reader keeps as a property of a node instead of a node of their own.
_ABSORBED = frozenset({"LAST", "NULLS", "WITHIN", "GROUPING", "SETS", "NEXT", "PRECISION"})

#: Functions whose first argument names a unit of time.
_UNIT_FIRST = frozenset({"date_trunc", "datetrunc", "date_diff", "datediff", "date_part"})
