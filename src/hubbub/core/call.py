r"""Syntax of analysis calls: CALL kmeans(table => 'letter', columns => ['x', 'y'], k => 8).

An analysis is requested by text, like a query, so the ledger, the server, the clients, and the command line handle both
alike. Values are numbers, 'strings', TRUE, FALSE, NULL, [lists] and {'maps': 1}. Each call has one canonical text.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hubbub.core import numbers
from hubbub.errors import QueryError

#: Limits on the length of a call, and on the nesting of lists and maps.
MAX_LENGTH = 200_000
MAX_DEPTH = 8

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"""
    r"""|(?P<name>[A-Za-z_][A-Za-z_0-9]*)|(?P<sign>=>|[()\[\]{},:;]))"""
)
_SPACE = re.compile(r"\s*")
_CALL = re.compile(r"\s*call\s", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AnalysisCall:
    """The name of an analysis and its named arguments."""

    name: str
    arguments: Mapping[str, Any]

    def text(self) -> str:
        """Return the canonical text.

        >>> AnalysisCall("kmeans", {"k": 8, "table": "letter", "columns": ["x", "y'"], "seeds": None}).text()
        "CALL kmeans(columns => ['x', 'y'''], k => 8, seeds => NULL, table => 'letter')"
        """
        arguments = ", ".join(f"{name} => {_literal(value)}" for name, value in sorted(self.arguments.items()))
        return f"CALL {self.name}({arguments})"


def is_call(text: object) -> bool:
    """Return whether a text is an analysis call."""
    return isinstance(text, str) and _CALL.match(text) is not None


def parse_call(text: str) -> AnalysisCall:
    """Parse a call.

    >>> parse_call("call tree(table => 'adult', depth => 3, share => .5)")
    AnalysisCall(name='tree', arguments={'table': 'adult', 'depth': 3, 'share': Fraction(1, 2)})
    """
    if len(text) > MAX_LENGTH or "\0" in text:
        raise QueryError("HB581", f"A call can have at most {MAX_LENGTH} characters and no NUL.", "Shorten the call.")
    tokens = _Tokens(text)
    tokens.take("name")  # CALL
    name, arguments = tokens.take("name").lower(), dict[str, Any]()
    tokens.expect("(")
    while tokens.next != ")":
        argument = tokens.take("name").lower()
        if argument in arguments:
            raise _syntax_error(f"argument {argument} is given twice")
        tokens.expect("=>")
        arguments[argument] = tokens.value(MAX_DEPTH)
        if tokens.next != ")":
            tokens.expect(",")
    tokens.expect(")")
    if tokens.next == ";":
        tokens.expect(";")
    if tokens.next:
        raise _syntax_error(f"unexpected text after the call: {tokens.next[:20]!r}")
    return AnalysisCall(name, arguments)


class _Tokens:
    """A tokenizer with one token of lookahead."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._kind = ""
        self.next = ""
        self._advance()

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            rest = self._text[_SPACE.match(self._text, self._position).end() :]  # type: ignore[union-attr]
            if rest:
                raise _syntax_error(f"unexpected {rest[:20]!r}")
            self._kind, self.next = "end", ""
            return
        self._position = match.end()
        self._kind = match.lastgroup or ""
        self.next = match.group(self._kind)

    def take(self, kind: str) -> str:
        """Consume a token of this kind and return it."""
        token = self.next
        if self._kind != kind:
            raise _syntax_error(f"expected a {kind} at {token[:20]!r}")
        self._advance()
        return token

    def expect(self, sign: str) -> None:
        """Consume this sign."""
        if self._kind != "sign" or self.next != sign:
            raise _syntax_error(f"expected {sign!r} at {self.next[:20]!r}")
        self._advance()

    def value(self, depth: int) -> Any:
        """Consume a value with at most `depth` levels of lists and maps."""
        if depth < 0:
            raise _syntax_error(f"lists and maps are nested more than {MAX_DEPTH} levels deep")
        if self._kind == "text":
            return self.take("text")[1:-1].replace("''", "'")
        if self._kind == "number":
            number = numbers.exact(self.take("number"), "argument")
            return int(number) if number.denominator == 1 else number
        if self._kind == "name":
            word = self.take("name").upper()
            if word not in _KEYWORDS:
                raise _syntax_error(f"{word!r} is neither a number nor a 'string'")
            return _KEYWORDS[word]
        if self.next == "[":
            return self._list(depth)
        if self.next == "{":
            return self._map(depth)
        raise _syntax_error(f"expected a value at {self.next[:20]!r}")

    def _list(self, depth: int) -> list[Any]:
        self.expect("[")
        values: list[Any] = []
        while self.next != "]":
            values.append(self.value(depth - 1))
            if self.next != "]":
                self.expect(",")
        self.expect("]")
        return values

    def _map(self, depth: int) -> dict[str, Any]:
        self.expect("{")
        values: dict[str, Any] = {}
        while self.next != "}":
            name = self.value(0)
            if not isinstance(name, str) or name in values:
                raise _syntax_error("the keys of a map must be distinct strings")
            self.expect(":")
            values[name] = self.value(depth - 1)
            if self.next != "}":
                self.expect(",")
        self.expect("}")
        return values


_KEYWORDS: Mapping[str, Any] = {"TRUE": True, "FALSE": False, "NULL": None}


def _literal(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_literal(str(k))}: {_literal(v)}" for k, v in sorted(value.items())) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_literal, value)) + "]"
    number = numbers.exact(value, "argument")
    return str(number) if number.denominator == 1 else _decimal(number)


def _decimal(value: Fraction) -> str:
    """Write a fraction as an exact decimal; reject fractions that have none.

    >>> _decimal(Fraction(1, 8)), _decimal(Fraction(-3, 200))
    ('0.125', '-0.015')
    """
    for places in range(1, numbers.MAX_PLACES * 4):
        scaled = value * 10**places
        if scaled.denominator == 1:
            digits = str(abs(int(scaled))).rjust(places + 1, "0")
            return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"
    raise QueryError("HB581", f"{value} cannot be written as a short decimal.", "Round it to a decimal.")


def _syntax_error(why: str) -> QueryError:
    return QueryError(
        "HB581",
        f"Syntax error in the call: {why}.",
        "Follow this example: CALL kmeans(table => 'visits', columns => ['a', 'b'], k => 8).",
    )
