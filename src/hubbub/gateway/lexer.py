"""Split the text of a client into tokens and statements, as PostgreSQL does; everything else is for the SQL parser.

Tested in tests/gateway/test_lexer.py.
"""

import re
from dataclasses import dataclass
from typing import Literal, cast

from hubbub.errors import ParameterError

#: Maximum number of statements in one text, and of its tokens, because it is split in the event loop.
MAX_STATEMENTS, MAX_TOKENS = 100, 50_000
Part = Literal["word", "quoted", "string", "number", "parameter", "comment", "space", "semicolon", "other"]

_PATTERNS: tuple[tuple[Part, str], ...] = (
    ("space", r"[ \t\r\n\f\v]+"),
    ("comment", r"--[^\n]*"),
    ("string", r"(?:[eE]'(?:[^'\\]|\\.|'')*'|(?:[bBxXnN]|[uU]&)?'(?:[^']|'')*')"),
    ("quoted", r'(?:[uU]&)?"(?:[^"]|"")*"'),
    ("parameter", r"\$[0-9]{1,9}"),
    ("number", r"[0-9][0-9A-Za-z_.]*"),
    ("word", r"[^\W\d][\w$]*"),
    ("semicolon", r";"),
    ("other", r"."),
)
_TOKEN = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _PATTERNS), re.DOTALL)
_DOLLAR = re.compile(r"\$(?:[^\W\d]\w*)?\$")
_NESTED = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class Token:
    """A part of a text, and where it is."""

    kind: Part
    text: str
    start: int

    @property
    def end(self) -> int:
        """Where the next token starts."""
        return self.start + len(self.text)

    @property
    def name(self) -> str:
        """The name that a word or a quoted identifier is; empty for other tokens."""
        if self.kind == "word":
            return self.text.lower()
        return self.text[1:-1].replace('""', '"') if self.kind == "quoted" and self.text[0] == '"' else ""


def tokens(text: str) -> list[Token]:
    """Split a text. Its time is linear in the length."""
    listed: list[Token] = []
    at = 0
    while at < len(text):
        token = _comment(text, at) or _dollar_quoted(text, at)
        if token is None:
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                raise AssertionError("the last pattern matches everything")
            kind = cast("Part", match.lastgroup)
            token = Token(kind, match[0], at)
            escaped = kind == "word" and match[0] in "eE" and text[match.end() : match.end() + 1] == "'"
            if escaped or (kind == "other" and match[0] in "'\""):
                raise _unterminated()
        listed.append(token)
        if len(listed) > MAX_TOKENS:
            raise ParameterError(
                "HB809", f"The text has more than {MAX_TOKENS:,} words and signs.", "Send fewer statements at once."
            )
        at = token.end
    return listed


def _comment(text: str, at: int) -> Token | None:
    if not text.startswith("/*", at):
        return None
    depth = 0
    for match in _NESTED.finditer(text, at):
        depth += 1 if match[0] == "/*" else -1
        if not depth:
            return Token("comment", text[at : match.end()], at)
    raise _unterminated()


def _dollar_quoted(text: str, at: int) -> Token | None:
    match = _DOLLAR.match(text, at) if text[at] == "$" else None
    if match is None:
        return None
    end = text.find(match[0], match.end())
    if end < 0:
        raise _unterminated()
    return Token("string", text[at : end + len(match[0])], at)


def _unterminated() -> ParameterError:
    return ParameterError(
        "HB809", "The text has a string, a quoted name or a comment without an end.", "Add the closing quote or */."
    )


def split(text: str) -> list[list[Token]]:
    """Split a text into the tokens of its statements.

    Comments between semicolons belong to the statement before them, or to the first one: they may be options.
    """
    statements: list[list[Token]] = [[]]
    for token in tokens(text):
        if token.kind == "semicolon":
            statements.append([])
        else:
            statements[-1].append(token)
    filled: list[list[Token]] = []
    before: list[Token] = []
    for each in statements:
        if significant(each):
            filled.append([*before, *each])
            before = []
        elif any(token.kind == "comment" for token in each):
            (filled[-1] if filled else before).extend(each)
    if len(filled) > MAX_STATEMENTS:
        raise ParameterError(
            "HB809", f"The text has {len(filled)} statements; the maximum is {MAX_STATEMENTS}.", "Send fewer at once."
        )
    return filled


def significant(listed: list[Token]) -> list[Token]:
    """Leave out blanks and comments."""
    return [token for token in listed if token.kind not in ("space", "comment")]


def joined(listed: list[Token]) -> str:
    """Return the text of tokens that follow each other."""
    return "".join(token.text for token in listed)
