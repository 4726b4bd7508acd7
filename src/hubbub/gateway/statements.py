"""The statements of a client by their first words: queries, settings, transactions, cursors, COPY.

Tested in tests/gateway/test_statements.py.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hubbub.answers.statements import literal
from hubbub.errors import ParameterError
from hubbub.gateway.lexer import Token, joined, significant, split

#: Options of a query that a comment may set, as in /* epsilon=0.1 */.
HINTS = frozenset({"epsilon", "within", "delta", "groups", "rows", "key", "intervals", "free", "sandbox"})
#: A comment that is meant for the sandbox must not be taken for a remark: its query would be charged.
_MEANS_SANDBOX = re.compile(r"^\W*(hubbub\W+)?sandbox\b|\bsandbox\b['\"]?\s*[=:]", re.IGNORECASE)
_HINT = re.compile(r"\s*([\w.]+)\s*=\s*('[^']*'|[\w.%/-]+)\s*(?:[,;]|$|(?=\s))")


@dataclass(frozen=True, slots=True)
class Ask:
    """A query: its text without the semicolon, and the options that its comments set."""

    sql: str
    hints: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN of a query."""

    query: Ask


@dataclass(frozen=True, slots=True)
class Copy:
    """COPY (query) TO STDOUT. `form` is text, csv or binary."""

    query: Ask
    form: str = "text"
    header: bool = False
    delimiter: str = "\t"
    null: str = r"\N"
    quote: str = '"'
    escape: str = '"'
    force_quote: bool = False


@dataclass(frozen=True, slots=True)
class SetVariable:
    """SET name = value; None for RESET or DEFAULT."""

    name: str
    value: str | None
    tag: str = "SET"


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW name."""

    name: str


@dataclass(frozen=True, slots=True)
class PgTransaction:
    """A statement about transactions, with the tag that completes it: BEGIN, COMMIT, ROLLBACK, SAVEPOINT, …."""

    tag: str


@dataclass(frozen=True, slots=True)
class Declare:
    """DECLARE name CURSOR FOR query."""

    name: str
    query: Ask


@dataclass(frozen=True, slots=True)
class Fetch:
    """FETCH or MOVE: the next rows of a cursor; None for all."""

    name: str
    rows: int | None
    move: bool = False


@dataclass(frozen=True, slots=True)
class Close:
    """CLOSE a cursor, or DEALLOCATE a prepared statement; None for all."""

    name: str | None
    tag: str


@dataclass(frozen=True, slots=True)
class Nothing:
    """A statement without any effect here, such as LISTEN or DISCARD."""

    tag: str


Statement = Ask | Explain | Copy | SetVariable | Show | PgTransaction | Declare | Fetch | Close | Nothing

_QUERIES = frozenset({"select", "with", "values", "table", "call", "from", "("})
_TRANSACTIONS = {
    "begin": "BEGIN",
    "start": "START TRANSACTION",
    "commit": "COMMIT",
    "end": "COMMIT",
    "rollback": "ROLLBACK",
    "abort": "ROLLBACK",
    "savepoint": "SAVEPOINT",
    "release": "RELEASE",
}
_NOTHING = {"listen": "LISTEN", "unlisten": "UNLISTEN", "checkpoint": "CHECKPOINT"}


def read(text: str) -> list[Statement]:
    """Read all statements of a text."""
    return [read_one(each) for each in split(text)]


def read_one(listed: list[Token]) -> Statement:
    """Read one statement."""
    words = significant(listed)
    first = words[0].text.lower()
    if first in _QUERIES:
        return _ask(listed)
    if first in _TRANSACTIONS:
        partial = first == "rollback" and any(token.name == "to" for token in words)
        return PgTransaction("ROLLBACK TO" if partial else _TRANSACTIONS[first])
    if first in _NOTHING:
        return Nothing(_NOTHING[first])
    reader = _READERS.get(first)
    if reader is None:
        raise ParameterError(
            "HB809",
            f"{first.upper()[:30]} is not supported: hubbub answers queries and changes nothing. Nothing was charged.",
            "Send a SELECT. In tools, choose a read-only connection.",
        )
    return reader(listed, words)


def hints(listed: list[Token]) -> dict[str, str]:
    """Read the comments that are nothing but a list of options.

    >>> from hubbub.gateway.lexer import tokens
    >>> hints(tokens("/* epsilon=0.1, groups=2 */ SELECT 1 /* Metabase:: userID: 1 */"))
    {'epsilon': '0.1', 'groups': '2'}
    """
    options: dict[str, str] = {}
    for token in listed:
        if token.kind == "comment":
            read = _hint(token.text.removeprefix("--").removeprefix("/*").removeprefix("+").removesuffix("*/"))
            if not read and _MEANS_SANDBOX.search(token.text):
                raise ParameterError(
                    "HB865",
                    "A comment names the sandbox, but it is not a list of options. Nothing was run or charged.",
                    "Write /* sandbox=on */ or /* sandbox=on, epsilon=0.1 */, or SET hubbub.sandbox = on.",
                )
            options |= read
    return options


def _hint(comment: str) -> dict[str, str]:
    options: dict[str, str] = {}
    at, comment = 0, comment.strip()
    while at < len(comment):
        match = _HINT.match(comment, at)
        name = "" if match is None else match[1].lower().removeprefix("hubbub.")
        if match is None or name not in HINTS:
            return {}
        options[name] = match[2].strip("'")
        at = match.end()
    return options


def _ask(listed: list[Token]) -> Ask:
    return Ask(joined(listed).strip(), hints(listed))


def _explain(listed: list[Token], words: list[Token]) -> Explain:
    rest = words[1:]
    if rest and rest[0].text == "(":
        options, rest = _in_parentheses(rest)
        if any(token.name == "analyze" for token in options):
            raise _analyze()
    if rest and rest[0].name == "analyze":
        raise _analyze()
    while rest and rest[0].name in ("verbose", "plan"):
        rest = rest[1:]
    if not rest:
        raise _syntax("EXPLAIN", "EXPLAIN SELECT …")
    return Explain(_ask(_from(listed, rest[0])))


def _analyze() -> ParameterError:
    return ParameterError(
        "HB809", "EXPLAIN ANALYZE is not supported. Nothing was charged.", "EXPLAIN SELECT … shows the cost for free."
    )


def _copy(listed: list[Token], words: list[Token]) -> Copy:
    if len(words) > 1 and words[1].text == "(":
        inside, rest = _in_parentheses(words[1:])
        query = _ask(_between(listed, words[1].end, inside))
    else:
        names = [token for token in words[1:] if token.name not in ("to", "from")]
        end = next((at for at, token in enumerate(words) if token.name in ("to", "from") and token.kind == "word"), 0)
        rest = words[end:] if end else []
        table = joined(words[1:end]) if end and names else ""
        query = Ask(f"SELECT * FROM {table}", hints(listed))  # noqa: S608 - the service checks it
    if len(rest) < 2 or rest[0].name != "to" or rest[1].name != "stdout":
        raise ParameterError(
            "HB817",
            "Only COPY (SELECT …) TO STDOUT is supported. Nothing was charged.",
            "Write the result on the client, as with \\copy in psql.",
        )
    return _copy_options(query, rest[2:])


def _copy_options(query: Ask, rest: list[Token]) -> Copy:
    """Read the options of COPY, in parentheses or in the old style."""
    words = [token for token in rest if token.text not in ("(", ")", ",", "=")]
    given: dict[str, str] = {}
    at = 0
    while at < len(words):
        name = words[at].name
        following = words[at + 1] if at + 1 < len(words) else None
        if name in ("with", "as"):
            at += 1
        elif name in ("csv", "binary", "text"):
            given["format"] = name
            at += 1
        elif name == "header":
            value = "" if following is None else following.text.lower()
            given["header"] = "off" if value in ("false", "off", "0") else "on"
            at += 2 if value in ("true", "false", "on", "off", "0", "1", "match") else 1
        elif name == "force_quote" or (name == "force" and following is not None and following.name == "quote"):
            given["force_quote"] = "on"
            at = len(words)
        elif name in ("format", "delimiter", "delimiters", "null", "quote", "escape", "encoding") and following:
            step = 2 if following.name == "as" and at + 2 < len(words) else 1
            given[name.rstrip("s")] = _string(words[at + step])
            at += step + 1
        else:
            raise _syntax("COPY", "COPY (SELECT …) TO STDOUT WITH (FORMAT csv, HEADER)")
    form = given.get("format", "text").strip('"').lower()  # DuckDB quotes it like a name
    if form not in ("text", "csv", "binary") or given.get("encoding", "utf8").lower() not in ("utf8", "utf-8"):
        raise _syntax("COPY", "COPY (SELECT …) TO STDOUT WITH (FORMAT csv, HEADER)")
    csv = form == "csv"
    marks = {name: given.get(name, default) for name, default in (("delimiter", "," if csv else "\t"), ("quote", '"'))}
    escape = given.get("escape", marks["quote"])
    if any(len(mark) != 1 or mark in "\r\n\\" for mark in (*marks.values(), *(escape if escape != "\\" else ()))):
        raise _syntax("COPY", "COPY … WITH (DELIMITER ',')")
    return Copy(
        query,
        form,
        header=given.get("header") == "on",
        null=given.get("null", "" if csv else r"\N"),
        escape=escape,
        force_quote="force_quote" in given,
        **marks,
    )


def _set(_: list[Token], words: list[Token]) -> Statement:
    rest = words[1:]
    while rest and rest[0].name in ("session", "local") and len(rest) > 1 and rest[1].name != "authorization":
        rest = rest[1:]
    names = [token.name for token in rest[:2]]
    if names[:1] in (["transaction"], ["characteristics"], ["constraints"]):
        return Nothing("SET")
    if names == ["time", "zone"]:
        return SetVariable("timezone", _value(rest[2:]))
    if names[:1] == ["names"]:
        return SetVariable("client_encoding", _value(rest[1:]))
    end = next((at for at, token in enumerate(rest) if token.text == "=" or token.name == "to"), 0)
    name = "".join(token.name or token.text for token in rest[:end])
    if not end or not re.fullmatch(r"\w+(\.\w+)*", name):
        raise _syntax("SET", "SET hubbub.epsilon = 0.1")
    return SetVariable(name, _value(rest[end + 1 :]))


def _value(rest: list[Token]) -> str | None:
    if not rest:
        raise _syntax("SET", "SET hubbub.epsilon = 0.1")
    values = [_string(token) for token in rest if token.text != ","] if len(rest) > 1 and _listed(rest) else None
    if values is not None:
        return ", ".join(values)
    text = "".join(token.text for token in rest)
    return literal(text) if rest[0].kind != "quoted" else rest[0].name


def _listed(rest: list[Token]) -> bool:
    return all((token.text == ",") == bool(place % 2) for place, token in enumerate(rest))


def _reset(_: list[Token], words: list[Token]) -> SetVariable:
    name = "".join(token.name or token.text for token in words[1:])
    return SetVariable("all" if name in ("all", "") else name, None, "RESET")


def _show(_: list[Token], words: list[Token]) -> Show:
    names = [token.name or token.text for token in words[1:]]
    if names == ["time", "zone"]:
        return Show("timezone")
    if names == ["transaction", "isolation", "level"]:
        return Show("transaction_isolation")
    return Show("".join(names).lower() or "all")


def _declare(listed: list[Token], words: list[Token]) -> Declare:
    at = next((at for at, token in enumerate(words) if token.name == "for" and token.kind == "word"), 0)
    if at < 3 or at + 1 >= len(words) or "cursor" not in [token.name for token in words[:at]]:
        raise _syntax("DECLARE", "DECLARE name CURSOR FOR SELECT …")
    return Declare(words[1].name, _ask(_from(listed, words[at + 1])))


def _fetch(_: list[Token], words: list[Token]) -> Fetch:
    rest = [token for token in words[1:] if token.name not in ("from", "in", "forward", "next")]
    move = words[0].name == "move"
    counted = [token.name or token.text for token in words[1:-1]]
    if not rest or any(word in ("backward", "prior", "first", "last", "absolute", "relative", "-") for word in counted):
        raise ParameterError(
            "HB809", "Cursors move forward only.", "Use FETCH FORWARD n FROM name, or FETCH ALL FROM name."
        )
    name = rest[-1].name
    if len(rest) == 1:
        return Fetch(name, 1, move)
    if rest[0].name == "all":
        return Fetch(name, None, move)
    if rest[0].kind != "number" or not rest[0].text.isdecimal() or len(rest[0].text) > 9:
        raise _syntax("FETCH", "FETCH FORWARD 100 FROM name")
    return Fetch(name, int(rest[0].text), move)


def _close(_: list[Token], words: list[Token]) -> Close:
    rest = [token for token in words[1:] if token.name != "prepare"]
    tag = "CLOSE CURSOR" if words[0].name == "close" else "DEALLOCATE"
    if not rest:
        raise _syntax(words[0].text.upper(), f"{words[0].text.upper()} name")
    everything = rest[0].kind == "word" and rest[0].name == "all"
    return Close(None if everything else rest[0].name, f"{tag} ALL" if everything else tag)


def _discard(_: list[Token], words: list[Token]) -> SetVariable | Nothing:
    kind = words[1].text.upper() if len(words) > 1 else "ALL"
    return SetVariable("all", None, "DISCARD ALL") if kind == "ALL" else Nothing(f"DISCARD {kind[:20]}")


_READERS: Mapping[str, Callable[[list[Token], list[Token]], Statement]] = {
    "explain": _explain,
    "copy": _copy,
    "set": _set,
    "reset": _reset,
    "show": _show,
    "declare": _declare,
    "fetch": _fetch,
    "move": _fetch,
    "close": _close,
    "deallocate": _close,
    "discard": _discard,
}


def _in_parentheses(words: list[Token]) -> tuple[list[Token], list[Token]]:
    """Return what is in the first parentheses, and what follows them."""
    depth = 0
    for at, token in enumerate(words):
        depth += (token.text == "(") - (token.text == ")")
        if not depth:
            return words[1:at], words[at + 1 :]
    raise _syntax("The statement", "closing parentheses")


def _from(listed: list[Token], first: Token) -> list[Token]:
    """Return all tokens from one on, and the comments before it."""
    before = [token for token in listed if token.start < first.start and token.kind == "comment"]
    return [*before, *(token for token in listed if token.start >= first.start)]


def _between(listed: list[Token], start: int, inside: list[Token]) -> list[Token]:
    """Return the tokens of a query in parentheses."""
    last = inside[-1].end if inside else start
    if not inside:
        raise _syntax("COPY", "COPY (SELECT …) TO STDOUT")
    comments = [token for token in listed if token.kind == "comment" and not start <= token.start < last]
    return [*comments, *(token for token in listed if start <= token.start < last)]


def _string(token: Token) -> str:
    """Return the content of a string, or a word as it is."""
    text = token.text
    if token.kind == "string" and text[:1] in "eE" and text[1:2] == "'":
        inner = text[2:-1].replace("''", "'")
        return inner.replace(r"\t", "\t").replace(r"\\", "\\")
    return literal(text) or token.name or ("" if token.kind == "string" else text)


def _syntax(what: str, example: str) -> ParameterError:
    return ParameterError("HB809", f"{what} cannot be read. Nothing was charged.", f"Write it as in: {example}.")
