"""Tables of values that are equal but have different representations, in two row orders.

Both tables of a pair have the same rows for each person, in another order, so a query has the same exact integers and
releases the same keys on both. The expected keys are written here by hand.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psycopg
from tests.accounting.postgres_server import Server
from tests.campaigns.rig import spark as rig_spark

from hubbub.engines.spark import catalog as spark_session

PEOPLE = 10
#: Every person has four rows: both forms of each value, twice.
ROWS = 4 * PEOPLE
#: The rows with the first form: the two orders, one row of one person, no row.
WORLDS: Mapping[str, frozenset[int]] = {
    "first": frozenset(range(0, ROWS, 2)),
    "second": frozenset(range(1, ROWS, 2)),
    "one": frozenset({0}),
    "none": frozenset(),
}


@dataclass(frozen=True)
class EqualPair:
    """A column type with two forms of a value, its declaration in hubbub.yaml, and the keys that may be released."""

    name: str
    type: str
    forms: tuple[str, str]
    keys: tuple[object, ...]
    declared: str = "{}"

    @property
    def one(self) -> bool:
        """Whether both forms are one value (or none)."""
        return len(self.keys) < 2


REAL, TEXT, DATE = "{bounds: [-9, 9]}", "{type: text}", "{type: date}"
_ACCENTS = ("'\u00e9'", "'e\u0301'")
_FORMS = ("e\u0301", "\u00e9")
_INSTANTS = ("TIMESTAMPTZ '2020-01-01 00:00:00+00'", "TIMESTAMPTZ '2020-01-01 05:30:00+05:30'")
_TIMES = ("TIMESTAMP '2020-01-01 00:00:00'", "TIMESTAMP '2020-01-01 23:59:59'")
#: A discovered date is released as midnight.
_MIDNIGHT = "2020-01-01 00:00:00"
_ID = "0a0a0a0a-0000-0000-0000-00000000000a"

DUCKDB: Sequence[EqualPair] = (
    EqualPair("zero", "DOUBLE", ("-0e0", "0e0"), (0.0,), REAL),
    EqualPair("free", "DOUBLE", ("-0e0", "0e0"), (0.0,)),
    EqualPair("short", "FLOAT", ("-0e0", "0e0"), (0.0,), REAL),
    EqualPair("nan", "DOUBLE", ("-('nan'::DOUBLE)", "'nan'::DOUBLE"), ()),
    EqualPair("zero_text", "DOUBLE", ("-0e0", "0e0"), ("0.0",), TEXT),
    EqualPair("short_text", "FLOAT", ("-0e0", "0e0"), ("0.0",), TEXT),
    EqualPair("nan_text", "DOUBLE", ("-('nan'::DOUBLE)", "'nan'::DOUBLE"), ("nan",), TEXT),
    EqualPair("scale", "DECIMAL(9, 3)", ("1.0", "1.000"), (1.0,)),
    EqualPair("scale_text", "DECIMAL(9, 3)", ("1.0", "1.000"), ("1.000",), TEXT),
    EqualPair("padded", "CHAR(3)", ("'a'", "'a  '"), ("a", "a  ")),
    EqualPair("ended", "VARCHAR", ("'a'", "'a' || chr(0)"), ("a", "a\0")),
    EqualPair("nocase", "VARCHAR COLLATE NOCASE", ("'a'", "'A'"), ("A", "a")),
    EqualPair("noaccent", "VARCHAR COLLATE NOACCENT.NOCASE", ("'e'", "'\u00c9'"), ("e", "\u00c9")),
    EqualPair("normal", "VARCHAR COLLATE NFC", _ACCENTS, _FORMS),
    EqualPair("forms", "VARCHAR", _ACCENTS, _FORMS),
    EqualPair("instant", "TIMESTAMPTZ", _INSTANTS, (_MIDNIGHT,)),
    EqualPair("instant_text", "TIMESTAMPTZ", _INSTANTS, ("2020-01-01 00:00:00+00",), TEXT),
    EqualPair("day", "TIMESTAMP", _TIMES, (_MIDNIGHT,), DATE),
    EqualPair("moment", "DATE", ("DATE '2020-01-01'", "DATE '2020-1-1'"), (_MIDNIGHT,), "{type: timestamp}"),
    EqualPair("uuid", "UUID", (f"'{_ID}'", f"'{_ID.upper()}'"), (_ID,)),
    EqualPair("truth", "BOOLEAN", ("'yes'", "'t'"), (True,)),
)

POSTGRES: Sequence[EqualPair] = (
    EqualPair("zero", "float8", ("'-0'", "'0'"), (0.0,), REAL),
    EqualPair("free", "float8", ("'-0'", "'0'"), (0.0,)),
    EqualPair("short", "float4", ("'-0'", "'0'"), (0.0,), REAL),
    EqualPair("nan", "float8", ("-('NaN'::float8)", "'NaN'"), ()),
    EqualPair("zero_text", "float8", ("'-0'", "'0'"), ("0",), TEXT),
    EqualPair("scale", "numeric", ("1.0", "1.000"), (1.0,)),
    EqualPair("scale_text", "numeric", ("1.0", "1.000"), ("1",), TEXT),
    EqualPair("padded", "char(4)", ("'a'", "'a   '"), ("a",)),
    EqualPair("ended", "varchar", ("'a'", "'a '"), ("a", "a ")),
    EqualPair("nocase", "citext", ("'a'", "'A'"), ("A", "a")),
    EqualPair("noaccent", "text COLLATE loose", ("'e'", "'\u00c9'"), ("e", "\u00c9")),
    EqualPair("normal", "text COLLATE forms", _ACCENTS, _FORMS),
    EqualPair("domain", "word", ("'a'", "'A'"), ("A", "a")),
    EqualPair("instant", "timestamptz", _INSTANTS, (_MIDNIGHT,)),
    EqualPair("instant_text", "timestamptz", _INSTANTS, ("2020-01-01 00:00:00+00",), TEXT),
    EqualPair("day", "timestamp", _TIMES, (_MIDNIGHT,), DATE),
    EqualPair("moment", "date", ("'2020-01-01'", "'January 1, 2020'"), (_MIDNIGHT,), "{type: timestamp}"),
    EqualPair("uuid", "uuid", (f"'{_ID}'", f"'{_ID.upper()}'"), (_ID,)),
    EqualPair("truth", "boolean", ("'yes'", "'t'"), (True,)),
)
_POSTGRES_TYPES = """
CREATE EXTENSION IF NOT EXISTS citext;
CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
CREATE COLLATION forms (provider = icu, locale = 'und', deterministic = false);
CREATE DOMAIN word AS text COLLATE loose;
"""

SPARK: Sequence[EqualPair] = (
    EqualPair("zero", "DOUBLE", ("-0e0", "0e0"), (0.0,), REAL),
    EqualPair("free", "DOUBLE", ("-0e0", "0e0"), (0.0,)),
    EqualPair("short", "FLOAT", ("-0e0", "0e0"), (0.0,), REAL),
    EqualPair("nan", "DOUBLE", ("-double('NaN')", "double('NaN')"), ()),
    EqualPair("zero_text", "DOUBLE", ("-0e0", "0e0"), ("0.0",), TEXT),
    EqualPair("scale", "DECIMAL(9, 3)", ("1.0", "1.000"), (1.0,)),
    EqualPair("padded", "STRING", ("'a'", "'a '"), ("a", "a ")),
    EqualPair("nocase", "STRING COLLATE UTF8_LCASE", ("'a'", "'A'"), ("A", "a")),
    EqualPair("noaccent", "STRING COLLATE UNICODE_CI_AI", ("'e'", "'\u00c9'"), ("e", "\u00c9")),
    EqualPair("trimmed", "STRING COLLATE UTF8_BINARY_RTRIM", ("'a'", "'a '"), ("a", "a ")),
    EqualPair("forms", "STRING COLLATE UNICODE", _ACCENTS, _FORMS),
    EqualPair("instant", "TIMESTAMP", ("'2020-01-01 00:00:00+00:00'", "'2020-01-01 05:30:00+05:30'"), (_MIDNIGHT,)),
    EqualPair("day", "TIMESTAMP", ("'2020-01-01 00:00:00'", "'2020-01-01 23:59:59'"), (_MIDNIGHT,), DATE),
    EqualPair("moment", "DATE", ("'2020-01-01'", "'2020-1-1'"), (_MIDNIGHT,), "{type: timestamp}"),
    EqualPair("truth", "BOOLEAN", ("'yes'", "'t'"), (True,)),
)

#: Other columns: the owner twice; the half of a person's rows; the form of a row; a zero.
_OTHERS = ("pid", "who", "half", "flag", "n")


def rows(pairs: Sequence[EqualPair], world: str, real: str) -> Iterator[str]:
    """Yield the rows of a table in order, each as a list of SQL values."""
    for row in range(ROWS):
        form = row in WORLDS[world]
        # `who` is a person's number as a real: person 0 has both zeros
        person = row // 4
        who = f"CAST('{'-0' if form and not person else person}' AS {real})"
        own = [str(person), who, str(row % 4 < 2).upper(), str(form).upper(), "0"]
        yield ", ".join([*own, *(f"CAST({pair.forms[not form]} AS {_bare(pair.type)})" for pair in pairs)])


def _bare(kind: str) -> str:
    return kind if kind.startswith("STRING") else kind.partition(" COLLATE")[0]


def _typed(pairs: Sequence[EqualPair], real: str) -> str:
    columns = [f"pid BIGINT, who {real}, half BOOLEAN, flag BOOLEAN, n INTEGER", *(f"{p.name} {p.type}" for p in pairs)]
    return ", ".join(columns)


def in_duckdb(folder: Path, pairs: Sequence[EqualPair] = DUCKDB) -> dict[str, str]:
    """Create the tables in a file and return the source of each."""
    with duckdb.connect(str(folder / "alike.duckdb")) as made:
        for world in WORLDS:
            made.execute(f"CREATE TABLE {world} ({_typed(pairs, 'DOUBLE')})")
            made.execute(f"INSERT INTO {world} VALUES {', '.join(f'({row})' for row in rows(pairs, world, 'DOUBLE'))}")
    return {world: f"duckdb:alike.duckdb#{world}" for world in WORLDS}


@contextmanager
def in_postgres(server: Server, pairs: Sequence[EqualPair] = POSTGRES) -> Iterator[dict[str, str]]:
    """Create the tables in a separate database."""
    with server.database() as dsn, psycopg.connect(dsn, autocommit=True) as made:
        made.execute(_POSTGRES_TYPES.encode())
        for world in WORLDS:
            made.execute(f"CREATE TABLE {world} ({_typed(pairs, 'float8')})".encode())
            values = ", ".join(f"({row})" for row in rows(pairs, world, "float8"))
            made.execute(f"INSERT INTO {world} VALUES {values}".encode())
        name = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
        yield {world: f"postgresql://hubbub@/{name}/{world}?host={server.home}" for world in WORLDS}


def in_spark(address: str, folder: Path, worlds: Sequence[str], pairs: Sequence[EqualPair] = SPARK) -> dict[str, str]:
    """Write the tables with Spark, which keeps collations in its Parquet files."""
    session = spark_session.connect(address, rig_spark.LIMITS)
    names = ", ".join([*_OTHERS, *(pair.name for pair in pairs)])
    try:
        for world in worlds:
            values = ", ".join(f"({row})" for row in rows(pairs, world, "DOUBLE"))
            made = session.sql(f"SELECT CAST(pid AS BIGINT) AS pid, * EXCEPT (pid) FROM VALUES {values} AS t({names})")
            made.coalesce(1).write.parquet(str(folder / f"{world}.parquet"))
    finally:
        session.stop()
    return {world: f"spark:{address}/{folder / world}.parquet" for world in worlds}
