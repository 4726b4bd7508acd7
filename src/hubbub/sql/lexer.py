"""The text of a query → tokens that are all on the allow-list.

sqlglot accepts more than hubbub supports, ignores some words, and recurses. This module therefore checks the
characters, length and nesting of the text, every token, and its neighbors before sqlglot parses anything.

Tested in tests/sql/test_parse.py.
"""

import unicodedata
from collections.abc import Callable
from typing import NoReturn

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from hubbub.sql.text import SourceText, quote
from hubbub.sql.tokens import COMMANDS, PLAIN_NAMES, REASONS, TOKENS, TYPE_TOKENS, token_set

MAX_TEXT = 100_000
MAX_TOKENS = 10_000
MAX_NESTING = 24

_OPENERS = (TokenType.L_PAREN, TokenType.CASE, TokenType.L_BRACKET)
_CLOSERS = (TokenType.R_PAREN, TokenType.END, TokenType.R_BRACKET)
_OPEN, _CLOSE = set(_OPENERS), set(_CLOSERS)
WORDS = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER}
_NAMES = {TokenType.VAR, TokenType.IDENTIFIER}
_QUERY = {TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN, TokenType.FROM, TokenType.PIVOT}
#: What can follow AS and a parenthesis: a query, or the definition of a window.
_AFTER_AS = _QUERY | {TokenType.VALUES, TokenType.PARTITION_BY, TokenType.ORDER_BY}
_OPERATORS = token_set(
    "PLUS DASH STAR SLASH DIV MOD CARET DSTAR EQ NEQ LT LTE GT GTE DPIPE BETWEEN LIKE ILIKE AND OR NOT"
)
_VALUES = _CLOSE | {TokenType.NUMBER, TokenType.STRING, TokenType.NULL, TokenType.TRUE, TokenType.FALSE}
_BEFORE_DISTINCT = {TokenType.SELECT, TokenType.L_PAREN, TokenType.IS, TokenType.NOT}
_BEFORE_ALL = token_set("UNION INTERSECT EXCEPT GROUP_BY ORDER_BY SELECT")
#: Infix operators and separators. A sign is not one of them, because it may be a prefix.
_INFIX = (_OPERATORS | {TokenType.COMMA, TokenType.ALIAS}) - {TokenType.DASH, TokenType.PLUS, TokenType.NOT}
#: Operators that NOT may precede, as in x NOT LIKE 'a%'.
_NEGATED = token_set("LIKE ILIKE BETWEEN IN")
#: Tokens after which an operand or a clause starts.
_STARTERS = (
    _OPERATORS
    | _BEFORE_ALL
    | token_set("L_PAREN L_BRACKET COMMA DISTINCT WHERE ORDER_BY HAVING ON FROM WHEN THEN ELSE IN LIMIT ALL")
)
#: Tokens before which an operand must have ended.
_ENDERS = _CLOSE | token_set(
    "COMMA FROM WHERE GROUP_BY HAVING ORDER_BY LIMIT UNION JOIN ON USING INNER FETCH OFFSET WHEN THEN ELSE"
)
_SIDES = ("PRECEDING", "FOLLOWING")
#: The only invisible characters that are allowed: control characters, format characters and odd spaces can hide text.
_LAYOUT = "\t\n\r "


def tokenize(source: SourceText, dialect: Dialect) -> list[Token]:
    """Split a text into tokens and check all of them."""
    _check_characters(source)
    try:
        tokens = dialect.tokenize(source.text)
    except TokenError:
        raise source.error(
            None, "HB501", "The text has an unterminated string or comment.", "Add the closing quote or */."
        ) from None
    tokens = _join_decimals(_renamed(_plain_names(tokens)))
    _check_tokens(source, tokens)
    _check_neighbors(source, tokens)
    return tokens


def number_placeholders(source: SourceText, tokens: list[Token]) -> list[Token]:
    """Replace each ? by $1, $2, … in the order of the text, because the tree does not keep that order."""
    marks = [token for token in tokens if token.token_type is TokenType.PLACEHOLDER]
    if marks and any(token.token_type is TokenType.PARAMETER for token in tokens):
        raise source.error(
            marks[0].start, "HB509", "The query uses both ? and $1 for parameters.", "Use one of the two styles."
        )
    numbered = list[Token]()
    for token in tokens:
        if token.token_type is TokenType.PLACEHOLDER:
            position = (token.line, token.col, token.start, token.end)
            numbered.append(Token(TokenType.PARAMETER, "$", *position))
            numbered.append(Token(TokenType.NUMBER, str(marks.index(token) + 1), *position))
        else:
            numbered.append(token)
    return numbered


def reject_statement(source: SourceText, at: exp.Expr | int | None, word: str) -> NoReturn:
    """Reject a statement that is not a query."""
    raise source.error(
        at,
        "HB502",
        f"{quote(word)} is not supported: only SELECT queries are.",
        "Write SELECT … FROM … GROUP BY …. Only the data owner can change data and settings.",
    )


def _check_characters(source: SourceText) -> None:
    text = source.text
    if not text.strip(_LAYOUT):
        raise source.error(None, "HB500", "The query is empty.", "Write SELECT … FROM ….")
    if len(text) > MAX_TEXT:
        raise source.error(
            None,
            "HB500",
            f"The query has {len(text):,} characters; the maximum is {MAX_TEXT:,}.",
            "Shorten the query.",
        )
    if text.isascii() and text.isprintable():
        return
    for offset, char in enumerate(text):
        if char not in _LAYOUT and unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"}:
            raise source.error(
                offset,
                "HB500",
                f"The character U+{ord(char):04X} is invisible and could hide text.",
                "Remove it. If it is part of a string, pass the string as a parameter.",
            )


def _plain_names(tokens: list[Token]) -> list[Token]:
    """Treat words such as percent or next as names, except after LIMIT 10, FETCH and LATERAL, and UNKNOWN after IS."""
    kinds = [None, None, *(token.token_type for token in tokens)]
    plain = list[Token]()
    for token, earlier, last in zip(tokens, kinds, kinds[1:], strict=False):
        kind = token.token_type
        if kind is TokenType.UNKNOWN:
            after_is = TokenType.IS in (last, earlier if last is TokenType.NOT else None)
            kind = TokenType.NULL if after_is else TokenType.VAR
        elif kind in PLAIN_NAMES and last not in (TokenType.NUMBER, TokenType.FETCH, TokenType.LATERAL):
            kind = TokenType.VAR
        elif kind is TokenType.STRUCT and token.text.upper() == "ROW":  # CURRENT ROW; DuckDB also has ROW(…)
            kind = TokenType.ROW
        plain.append(token if kind is token.token_type else _changed(token, kind, token.text))
    return plain


def _renamed(tokens: list[Token]) -> list[Token]:
    """Read TOP n, DECODE and TRUNCATE(x) in every dialect."""
    renamed = list[Token]()
    for token, after in zip(tokens, [*tokens[1:], None], strict=False):
        kind, word, last = token.token_type, token.text.lower(), renamed[-1].token_type if renamed else None
        called = after is not None and after.token_type is TokenType.L_PAREN
        starts = last in (TokenType.SELECT, TokenType.DISTINCT, TokenType.ALL)
        if kind is TokenType.VAR and word == "top" and starts and after and after.token_type is TokenType.NUMBER:
            token = _changed(token, TokenType.TOP, token.text)
        elif kind is TokenType.VAR and word == "decode" and called:
            token = _changed(token, kind, "decode_case")
        elif kind is TokenType.TRUNCATE and called:
            token = _changed(token, TokenType.VAR, "trunc")
        renamed.append(token)
    return renamed


def _changed(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)


def _join_decimals(tokens: list[Token]) -> list[Token]:
    """Read .06 as 0.06, where sqlglot reads a dot and a number. After a name or a value, a dot is something else."""
    joined = list[Token]()
    for token in tokens:
        dot, before = (joined[-1], joined[-2:-1]) if joined else (token, [])
        if (
            token.token_type is TokenType.NUMBER
            and dot.token_type is TokenType.DOT
            and dot.end + 1 == token.start
            and not (before and before[0].token_type in _NAMES | _VALUES)
        ):
            joined[-1] = Token(TokenType.NUMBER, f"0.{token.text}", token.line, token.col, dot.start, token.end)
        else:
            joined.append(token)
    return joined


def _operands(tokens: list[Token]) -> list[Token]:
    """Return the tokens as the rules for neighbors see them: NOT LIKE is one operator, and a * for columns a value."""
    seen = list[Token]()
    for token, after in zip(tokens, [*tokens[1:], None], strict=False):
        kind, last = token.token_type, seen[-1].token_type if seen else None
        if kind is TokenType.NOT and after is not None and after.token_type in _NEGATED:
            continue
        star = kind is TokenType.STAR and (last in _STARTERS or last is TokenType.DOT)
        seen.append(_changed(token, TokenType.NULL, token.text) if star else token)
    return seen


def _check_tokens(source: SourceText, tokens: list[Token]) -> None:
    if len(tokens) > MAX_TOKENS:
        raise source.error(
            None, "HB500", f"The query has {len(tokens):,} tokens; the maximum is {MAX_TOKENS:,}.", "Shorten the query."
        )
    hint = max(source.text.find("/*+"), source.text.find("/*!"))
    if hint >= 0:
        raise source.error(
            hint, "HB503", "Comments that start with /*+ or /*! are not supported: some engines run them.", "Remove it."
        )
    depth = 0
    for token in tokens:
        kind = token.token_type
        if kind in COMMANDS:
            reject_statement(source, token.start, token.text)
        if kind not in TOKENS:
            reason, remedy = REASONS.get(kind, ("is not supported", ""))
            raise source.error(
                token.start,
                "HB503",
                f"{quote(token.text)} {reason}.",
                remedy or 'Remove it. If it is the name of a column or table, put it in double quotes ("name").',
            )
        depth += (kind in _OPEN) - (kind in _CLOSE)
        if depth > MAX_NESTING:
            raise source.error(
                token.start,
                "HB500",
                f"Parentheses, subqueries or CASE expressions are nested more than {MAX_NESTING} levels deep.",
                "Move the inner parts into a WITH clause.",
            )
    kinds = [token.token_type for token in tokens]
    for opener, closer in zip(_OPENERS, _CLOSERS, strict=True):
        if kinds.count(opener) != kinds.count(closer):
            raise source.error(
                None,
                "HB501",
                "Parentheses, brackets, or CASE and END do not match.",
                "Add the missing ), ] or END, or remove the extra one.",
            )


def _check_neighbors(source: SourceText, tokens: list[Token]) -> None:
    """Reject sequences of tokens that sqlglot accepts or silently repairs, and that an engine would not."""
    if tokens and tokens[0].token_type not in _QUERY:
        raise source.error(
            tokens[0].start,
            "HB501",
            "A query starts with SELECT or WITH.",
            f"Remove {quote(tokens[0].text)} from the start of the query.",
        )
    whens = [t.start for t in tokens if t.token_type is TokenType.WHEN]
    if len(whens) != sum(t.token_type is TokenType.THEN for t in tokens):
        raise source.error(whens[0] if whens else None, "HB501", "A WHEN has no matching THEN.", "Write WHEN … THEN ….")
    for index, token in enumerate(tokens):
        if token.token_type is TokenType.BETWEEN and not _has_and(tokens[index + 1 :]):
            raise source.error(token.start, "HB501", "BETWEEN has no matching AND.", "Write x BETWEEN low AND high.")
    tokens = _operands(tokens)
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        kind = token.token_type
        first, last = (None if t is None else t.token_type for t in (before, after))
        touching = before is not None and before.end + 1 == token.start
        for code, message, remedy, applies in _SEQUENCES:
            if applies(first, kind, last, touching):
                raise source.error(token.start, code, message, remedy)
        if kind is TokenType.STRING and (
            first is TokenType.JOIN or (first is TokenType.FROM and _is_clause(source, before))
        ):
            raise source.error(
                token.start,
                "HB505",
                "A string after FROM or JOIN names a file, and queries cannot read files.",
                'Use the name of a declared table. If it needs quotes, use double quotes ("name").',
            )


def _is_clause(source: SourceText, token: Token | None) -> bool:
    """Tell whether a FROM starts a clause, rather than ending IS DISTINCT FROM."""
    return token is not None and not source.text[: token.start].rstrip(_LAYOUT).lower().endswith("distinct")


def _has_and(tokens: list[Token]) -> bool:
    """Tell whether the tokens after a BETWEEN are one operand and an AND."""
    depth, last = 0, None
    for token in tokens:
        kind = token.token_type
        depth += (kind in _OPEN) - (kind in _CLOSE)
        if depth == 0 and kind is TokenType.AND:
            return True
        if token.text.upper() in _SIDES:  # a bound of a window's frame: UNBOUNDED PRECEDING
            continue
        if depth < 0 or (depth == 0 and (kind in _ENDERS - _CLOSE or (kind in WORDS and last in WORDS))):
            return False
        # the unit of an interval follows its number directly
        last = None if last is TokenType.INTERVAL else kind
    return False


Neighbor = TokenType | None
Applies = Callable[[Neighbor, TokenType, Neighbor, bool], bool]

#: Code, message, remedy, and a test of the token before, the token, the token after, and whether the first two touch.
#: sqlglot was seen to read each of these as something else, or to drop it.
_SEQUENCES: tuple[tuple[str, str, str, Applies], ...] = (
    # 0x1F would be read as 0 with the alias x1F
    (
        "HB501",
        "Two words are written without a space between them.",
        "Add a space or an operator between them.",
        lambda a, b, _, touching: touching and a in WORDS and b in WORDS,
    ),
    (
        "HB501",
        "The operand before this operator or comma is missing.",
        "Add it, or remove the operator or comma.",
        lambda a, b, *_: b in _INFIX and (a is None or a in _STARTERS),
    ),
    (
        "HB501",
        "The operand after this operator is missing.",
        "Add it, or remove the operator.",
        lambda _, b, c, __: b in _OPERATORS and (c is None or c in _ENDERS),
    ),
    (
        "HB501",
        "An operator or comma is missing between two values.",
        "Add it.",
        lambda a, b, *_: a in _VALUES and b is TokenType.NUMBER,
    ),
    (
        "HB501",
        "Nothing follows this comma.",
        "Add the missing item, or remove the comma.",
        lambda _, b, c, __: b is TokenType.COMMA and c in _CLOSE | {TokenType.JOIN},
    ),
    (
        "HB501",
        "Unexpected ALL.",
        "Use ALL only in UNION ALL (INTERSECT, EXCEPT), GROUP BY ALL, ORDER BY ALL and SELECT ALL.",
        lambda a, b, *_: b is TokenType.ALL and a not in _BEFORE_ALL,
    ),
    (
        "HB501",
        "Unexpected DISTINCT.",
        "Use DISTINCT only in SELECT DISTINCT, COUNT(DISTINCT x) and IS DISTINCT FROM.",
        lambda a, b, *_: b is TokenType.DISTINCT and a not in _BEFORE_DISTINCT,
    ),
    (
        "HB501",
        "A type name cannot be followed by a number.",
        "Write CAST(1 AS INTEGER).",
        lambda _, b, c, __: b in TYPE_TOKENS and c is TokenType.NUMBER,
    ),
    (
        "HB501",
        "AS, or the name before it, is missing.",
        "Write WITH name AS (SELECT …).",
        lambda a, b, c, _: (
            b is TokenType.L_PAREN
            and ((a in _NAMES and c is TokenType.SELECT) or (a is TokenType.ALIAS and c not in _AFTER_AS))
        ),
    ),
)
