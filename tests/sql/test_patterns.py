"""Regular expressions: what is accepted means in DuckDB what it means in Python, and never fails to compile."""

import itertools
import random
import re

import duckdb
import psycopg
import pytest
from tests.fixtures.postgres_server import Server

from hubbub.core.schema import Kind
from hubbub.errors import QueryError
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.parse_times import time_format
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.dialects.spark import SPARK
from hubbub.sql.expressions import Col, FunctionCall, Literal
from hubbub.sql.patterns import (
    MAX_ATTEMPTS,
    MAX_PATTERN,
    MAX_REPEATS,
    attempts,
    parts_of_text,
    size_of,
    translated,
)

ATOMS = ["a", "b", ".", "[ab]", "[^a]", r"\d", r"\.", "1", "[a-b0-9]", r"[\d.]"]
QUANTIFIERS = ["", "*", "+", "?", "{2}", "{1,2}", "{1,}"]
TEXTS = ["".join(signs) for length in range(4) for signs in itertools.product("ab1.", repeat=length)]

#: Patterns without |, of which parts are taken: atoms that compete for the same characters.
PARTS = [
    "".join(atom + times for atom, times in zip(atoms, quantifiers, strict=True))
    for atoms in itertools.product(["a", "[ab]", "b"], repeat=3)
    for quantifiers in itertools.product(["", "*", "{0,2}"], repeat=3)
]

#: Patterns with signs that engines treat differently.
SPECIAL = [
    r"^\s",
    r"\S$",
    r"\w",
    r"^\W$",
    r"\D",
    "^.$",
    ".b$",
    "[^b]$",
    "a$",
    "^$",
    "É|x",
    "[à-ï]",
    r"[\w.-.]",
    r"x\-y",
    "a b",
    "_|#|~|&",
    r"[\]\[\\]",
    "()|a",
    "a||b",
    "^(a|^b)$",
    "^(a[\x01-\U0010ffff]*)$",
    "^([\x01-\U0010ffff])$",
]


def _call(pattern: str) -> FunctionCall:
    return FunctionCall("regexp", (Col("x", Kind.TEXT), Literal(pattern, Kind.TEXT)), Kind.BOOLEAN)


def random_pattern(rng: random.Random) -> str:
    parts = [rng.choice(ATOMS) + rng.choice(QUANTIFIERS) for _ in range(rng.randint(1, 4))]
    if rng.random() < 0.5:
        parts.insert(rng.randint(0, len(parts)), f"({rng.choice(ATOMS)}|{rng.choice(ATOMS)}{rng.choice(QUANTIFIERS)})")
    return rng.choice(["", "^"]) + "".join(parts) + rng.choice(["", "$"])


def test_an_accepted_pattern_matches_as_in_python() -> None:
    rng = random.Random(5)
    patterns = sorted({random_pattern(rng) for _ in range(150)})
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("CREATE TABLE t AS SELECT unnest(?) AS x", [TEXTS])
        for pattern in patterns:
            assert size_of(pattern) is not None, pattern
            found = connection.execute("SELECT x FROM t WHERE regexp_matches(x, ?)", [pattern]).fetchall()
            expected = {text for text in TEXTS if re.search(pattern.replace("$", r"\Z"), text)}
            assert {x for (x,) in found} == expected, pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "a" * (MAX_PATTERN + 1),
        "(a+)+",
        "(a|b)*",
        "(ab){2}",
        "a**",
        "a{2}{3}",
        f"a{{{MAX_REPEATS + 1}}}",
        "a{3,2}",
        r"(a)\1",
        "(?i)a",
        "(?=a)",
        "(?P<x>a)",
        "[z-a]",
        "[[:alpha:]]",
        "[",
        "a)",
        "(a",
        "*a",
        r"\b",
        r"\p{L}",
        "{",
        "a\\",
    ],
)
def test_other_patterns_are_refused(pattern: str) -> None:
    assert size_of(pattern) is None


def test_a_pattern_has_at_least_as_many_states_as_characters_it_can_match() -> None:
    """The work for each character of a text is bounded by the states, so counted repetitions count."""
    assert size_of("a" * 30) == 31
    assert size_of("a{30}") == 31
    assert size_of("[ab]{2,30}c") == 32


def test_a_translated_pattern_matches_as_in_duckdb(postgres_server: Server) -> None:
    """On PostgreSQL, and (by Python's engine, with the same syntax) as Java reads it; Spark itself is asked below."""
    texts = [*TEXTS, "a\nb", "\n", "ab\n", "É1", "x-y", "a b\t", "_", "²", "1\x0b"]
    rng = random.Random(6)
    patterns = sorted({random_pattern(rng) for _ in range(120)} | {*SPECIAL})
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("CREATE TABLE t AS SELECT unnest(?) AS x", [texts])
        expected = {
            pattern: {
                x for (x,) in connection.execute("SELECT x FROM t WHERE regexp_matches(x, ?)", [pattern]).fetchall()
            }
            for pattern in patterns
        }
    for pattern in patterns:
        java = translated(pattern, start=r"\A", end=r"\Z")
        assert java is not None
        assert {x for x in texts if re.search(java, x)} == expected[pattern], pattern
    with psycopg.connect(postgres_server.dsn("postgres")) as remote:
        for pattern in patterns:
            text = POSTGRES.spellings["regexp"](_call(pattern), ["x"])
            found = remote.execute(f"SELECT x FROM unnest(%s::text[]) AS t(x) WHERE {text.replace('%', '%%')}", [texts])
            assert {x for (x,) in found.fetchall()} == expected[pattern], pattern


def test_a_class_that_an_engine_lacks_is_refused_by_name() -> None:
    for dialect in (POSTGRES, SPARK):
        with pytest.raises(QueryError, match="HB574"):
            dialect.spellings["regexp"](_call(r"[\D.]"), ["x"])


def test_spark_refuses_patterns_that_can_be_tried_in_many_ways() -> None:
    for pattern in ("^[A-Z][0-9]{2}", "^a.*b$", "diabetes|insulin", "[0-9]{3}-[0-9]{2}", "^a?b?c+"):
        assert "RLIKE" in SPARK.spellings["regexp"](_call(pattern), ["x"])
    for pattern in (".*a.*b", "a+b", "^a.*b.*c", "a{1,50}b{1,50}c", "^a*|b*"):
        with pytest.raises(QueryError, match="too many ways"):
            SPARK.spellings["regexp"](_call(pattern), ["x"])


def _steps(pattern: str, text: str) -> int:
    """Count the atoms that a plain backtracking engine compares until it gives up or has tried all ways."""
    atoms = re.findall(r"(\^|\$|[a-z])(\*|\+|\?|\{\d+,\d+\})?", pattern)
    steps = 0

    def tried(place: int, atom: int) -> None:
        nonlocal steps
        steps += 1
        if atom == len(atoms):
            return
        sign, often = atoms[atom]
        if sign in "^$":
            if place == (0 if sign == "^" else len(text)):
                tried(place, atom + 1)
            return
        low, high = {"": (1, 1), "*": (0, 99), "+": (1, 99), "?": (0, 1)}.get(often) or eval(often.strip("{}"))
        there = 0
        while there < high and place + there < len(text) and text[place + there] == sign:
            there += 1
        for count in range(there, low - 1, -1):
            tried(place + count, atom + 1)

    for start in range(len(text) + 1):
        tried(start, 0)
        if pattern.startswith("^"):
            break
    return steps


def test_the_ways_to_match_are_those_that_backtracking_can_try() -> None:
    """The bound holds where all ways fail, on texts that are worst for them."""
    for pattern in ("^a*b$", "a*b", "a*a*b", "^a*a*a*b", "a{1,3}a{0,4}b", "a?a?a?aab", "^ab", "aaab"):
        for length in (0, 1, 3, 9):
            assert _steps(pattern, "a" * length) <= attempts(pattern, length), (pattern, length)
    assert attempts("a*a*b", 4096) > MAX_ATTEMPTS


FORMATS = [
    "%Y-%m-%d",
    "%d.%m.%Y",
    "%Y%m%d",
    "%Y-%m-%d %H:%M:%S",
    "%H:%M",
    "%m/%d/%Y",
    "%Y-%m-%dT%H:%M",
    "%Y",
    "%d%m",
    "%Y %m",
]
DIGITS = [
    "2024",
    "0",
    "00",
    "1",
    "29",
    "31",
    "2",
    "02",
    "12",
    "13",
    "9999",
    "0000",
    "60",
    "59",
    "24",
    "23",
    "4",
    "0004",
]


def random_moment(rng: random.Random) -> str:
    """Write something like a moment: fields of a format, often valid, with blanks or other signs in between."""
    form = rng.choice(FORMATS)
    text = re.sub("%[YmdHMS]", lambda _: rng.choice(DIGITS), form)
    if rng.random() < 0.5:
        text = rng.choice(["2024-02-29", "2023-02-29", "0000-02-29 23:59:59", "20240131", "31.12.9999", "1/2/3"])
    for _ in range(rng.choice((0, 0, 1, 2))):
        place = rng.randrange(len(text) + 1)
        text = text[:place] + rng.choice([" ", "\t", "x", "1", "-", "\n", "²"]) + text[place:]
    return text


def test_a_format_reads_what_duckdb_reads_on_postgres(postgres_server: Server) -> None:
    rng = random.Random(8)
    texts = sorted({random_moment(rng) for _ in range(1500)} | {" 2024-01-05 ", "", " ", "infinity", " Epoch\t"})
    column = Col("x", Kind.TEXT)
    with duckdb.connect(config={"threads": 1}) as local, psycopg.connect(postgres_server.dsn("postgres")) as remote:
        local.execute("CREATE TABLE t AS SELECT unnest(?) AS x", [texts])
        for form in FORMATS:
            call = FunctionCall("parse_time", (column, Literal(form, Kind.TEXT)), Kind.TIMESTAMP)
            mine = DUCKDB.spellings["parse_time"](call, ["x", f"'{form}'"])
            theirs = POSTGRES.spellings["parse_time"](call, ["x", f"'{form}'"]).replace("%", "%%")
            expected = dict(local.execute(f"SELECT x, CAST({mine} AS VARCHAR) FROM t").fetchall())
            found = remote.execute(f"SELECT x, CAST({theirs} AS text) FROM unnest(%s::text[]) AS t(x)", [texts])
            assert dict(found.fetchall()) == expected, form
            assert any(expected.values()), form
            assert expected["infinity"] is None is expected[" Epoch\t"]


def test_formats_that_engines_read_differently_are_refused_by_name() -> None:
    for form in ("%Y-%Y", " %Y", "%Y "):
        assert time_format(form) is None
        call = FunctionCall("parse_time", (Col("x", Kind.TEXT), Literal(form, Kind.TEXT)), Kind.TIMESTAMP)
        for dialect in (POSTGRES, SPARK):
            with pytest.raises(QueryError, match="HB574"):
                dialect.spellings["parse_time"](call, ["x", "f"])


def _longest(pattern: str, text: str) -> tuple[int, int] | None:
    """Return the leftmost match, and of these the longest, by trying all ends."""
    compiled = re.compile(pattern, re.ASCII)
    for start in range(len(text) + 1):
        ends = [end for end in range(start, len(text) + 1) if compiled.fullmatch(text, start, end)]
        if ends:
            return start, max(ends)
    return None


def test_parts_of_texts_are_the_same_for_engines_that_backtrack_and_for_longest() -> None:
    """All 729 patterns of three atoms over two letters, on all texts of up to four letters."""
    texts = ["".join(signs) for length in range(5) for signs in itertools.product("ab", repeat=length)]
    for pattern in PARTS:
        least, groups = parts_of_text(pattern) or (None, None)
        assert groups == 0
        lengths = set[int]()
        for text in texts:
            found = re.search(pattern, text)
            assert (None if found is None else found.span()) == _longest(pattern, text), (pattern, text)
            lengths |= set() if found is None else {found.end() - found.start()}
        assert least is not None
        assert min(lengths) >= least


def test_a_choice_tells_engines_apart() -> None:
    """Planted: with |, or a quantifier after a group, the first match need not be the longest."""
    assert parts_of_text("a|ab") is None
    assert parts_of_text("(a|ab)c") is None
    assert parts_of_text("[|]a") == (2, 0)
    found = re.search("a|ab", "ab")
    assert found is not None
    assert found.span() != _longest("a|ab", "ab")


def test_a_part_is_that_of_duckdb_on_postgres(postgres_server: Server) -> None:
    """Groups and whole matches, and replacements, of the texts that atoms compete for."""
    texts = ["".join(signs) for length in range(5) for signs in itertools.product("ab", repeat=length)]
    extracts = [("^a?(a*)b", 1), ("^[ab]?(a{1,2})b?", 1), ("^(a?)[ab]{1,2}", 1), ("[ab]+b", 0), ("a?[ab]?b{1,2}", 0)]
    replacements = [("a?b", True), ("a{1,2}", True), ("[ab]b?", False), ("b+a?", True), ("^a", True)]
    every: list[FunctionCall] = [_part("regexp_extract", pattern, group) for pattern, group in extracts]
    every += [_part("regexp_replace", pattern, "-", all_of_them) for pattern, all_of_them in replacements]
    written = [
        [dialect.spelling(call.function)(call, _written(call)) for call in every] for dialect in (DUCKDB, POSTGRES)
    ]
    values = ", ".join(f"('{text}')" for text in texts)
    mine, theirs = (f"SELECT {', '.join(each)} FROM (VALUES {values}) AS t(x)" for each in written)
    with duckdb.connect() as local, psycopg.connect(postgres_server.dsn("postgres")) as remote:
        assert local.execute(mine).fetchall() == remote.execute(theirs).fetchall()


def _part(name: str, *constants: str | int) -> FunctionCall:
    kinds = {str: Kind.TEXT, int: Kind.INTEGER, bool: Kind.BOOLEAN}
    return FunctionCall(
        name, (Col("x", Kind.TEXT), *(Literal(each, kinds[type(each)]) for each in constants)), Kind.TEXT
    )


def _written(call: FunctionCall) -> list[str]:
    return [DUCKDB.literal(arg.value, arg.kind) if isinstance(arg, Literal) else "x" for arg in call.args]


def test_a_group_that_can_be_matched_in_many_ways_is_refused_on_postgres() -> None:
    call = _part("regexp_extract", "a*(b*)", 1)
    assert DUCKDB.spelling("regexp_extract")(call, _written(call))
    with pytest.raises(QueryError, match="too many ways"):
        POSTGRES.spelling("regexp_extract")(call, _written(call))
    assert parts_of_text("(a)(b)") == (2, 2)
