"""The rows of the catalog: tables, columns and types, from what an analyst may see of the declarations.

Tested in tests/gateway/test_catalog.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from hubbub.gateway.values import BOOL, DATE, FLOAT8, INT2, INT4, INT8, KINDS, NAME, NUMERIC, OID, STRING, TIMESTAMP

#: Types of columns in the list of tables, and in DuckDB.
TYPES = {
    "t": "VARCHAR",
    "l": "BIGINT",
    "i": "INTEGER",
    "s": "SMALLINT",
    "b": "BOOLEAN",
    "f": "DOUBLE",
    "T": "VARCHAR[]",
    "L": "BIGINT[]",
}
#: The version of PostgreSQL that clients are told; what they ask for depends on it.
SERVER_VERSION = "15.0"
VERSION = "PostgreSQL 15.0 (hubbub)"
#: The object ids of the schemas.
PG_CATALOG, PUBLIC, HUBBUB, INFORMATION = 11, 2200, 16000, 13000
OWNER, DATABASE = 10, 5
_FIRST = 16384
_TABLE_TYPE, _HEAP, _BTREE = "BASE TABLE", 2, 403
_LENGTHS = {"smallint": 16, "integer": 32, "bigint": 64, "double precision": 53}

#: Types by object id: name, size, kind, category, element, array.
_PG_TYPES: Sequence[tuple[int, str, int, str, str, int, int]] = (
    (16, "bool", 1, "b", "B", 0, 1000),
    (17, "bytea", -1, "b", "U", 0, 1001),
    (18, "char", 1, "b", "Z", 0, 1002),
    (19, "name", 64, "b", "S", 18, 1003),
    (20, "int8", 8, "b", "N", 0, 1016),
    (21, "int2", 2, "b", "N", 0, 1005),
    (23, "int4", 4, "b", "N", 0, 1007),
    (25, "text", -1, "b", "S", 0, 1009),
    (26, "oid", 4, "b", "N", 0, 1028),
    (114, "json", -1, "b", "U", 0, 199),
    (700, "float4", 4, "b", "N", 0, 1021),
    (701, "float8", 8, "b", "N", 0, 1022),
    (705, "unknown", -2, "p", "X", 0, 0),
    (1000, "_bool", -1, "b", "A", 16, 0),
    (1005, "_int2", -1, "b", "A", 21, 0),
    (1007, "_int4", -1, "b", "A", 23, 0),
    (1009, "_text", -1, "b", "A", 25, 0),
    (1015, "_varchar", -1, "b", "A", 1043, 0),
    (1016, "_int8", -1, "b", "A", 20, 0),
    (1022, "_float8", -1, "b", "A", 701, 0),
    (1042, "bpchar", -1, "b", "S", 0, 1014),
    (1043, "varchar", -1, "b", "S", 0, 1015),
    (1082, "date", 4, "b", "D", 0, 1182),
    (1083, "time", 8, "b", "D", 0, 1183),
    (1114, "timestamp", 8, "b", "D", 0, 1115),
    (1184, "timestamptz", 8, "b", "D", 0, 1185),
    (1186, "interval", 16, "b", "T", 0, 1187),
    (1700, "numeric", -1, "b", "N", 0, 1231),
    (2249, "record", -1, "p", "P", 0, 2287),
    (2278, "void", 4, "p", "P", 0, 0),
    (2950, "uuid", 16, "b", "U", 0, 2951),
    (3802, "jsonb", -1, "b", "U", 0, 3807),
)
#: The names that format_type gives, where they differ.
FORMATTED = {
    each.oid: each.name for each in (BOOL, NAME, INT2, INT4, INT8, OID, FLOAT8, STRING, DATE, TIMESTAMP, NUMERIC)
} | {
    18: '"char"',
    700: "real",
    1000: "boolean[]",
    1005: "smallint[]",
    1007: "integer[]",
    1009: "text[]",
    1015: "character varying[]",
    1016: "bigint[]",
    1022: "double precision[]",
    1042: "character",
    1043: "character varying",
    1083: "time without time zone",
    1184: "timestamp with time zone",
}


@dataclass(frozen=True, slots=True)
class PgColumn:
    """A column that can be queried: its name, its kind, whether it may be NULL, and a remark."""

    name: str
    kind: str
    nullable: bool = True
    remark: str = ""


@dataclass(frozen=True, slots=True)
class PgTable:
    """A table that can be queried."""

    schema: str
    name: str
    columns: tuple[PgColumn, ...]
    remark: str = ""


Rows = list[dict[str, Any]]


@cache
def known_tables() -> Mapping[str, Mapping[str, str]]:
    """Return the tables of pg_catalog and information_schema, with the types of their columns."""
    text = (resources.files("hubbub.gateway.catalog") / "tables.txt").read_text()
    listed: dict[str, Mapping[str, str]] = {}
    for line in text.splitlines():
        name, _, columns = line.partition(": ")
        listed[name] = {part[:-2]: TYPES[part[-1]] for part in columns.split()}
    return listed


def oids(tables: Sequence[PgTable]) -> dict[tuple[str, str], int]:
    """Number the tables, as PostgreSQL numbers those of users."""
    return {(table.schema, table.name): _FIRST + place for place, table in enumerate(tables)}


def rows(tables: Sequence[PgTable]) -> dict[str, Rows]:
    """Return all rows of the catalog."""
    numbers = oids(tables)
    return {
        "pg_catalog.pg_namespace": [
            {"oid": oid, "nspname": name, "nspowner": OWNER}
            for oid, name in (
                (PG_CATALOG, "pg_catalog"),
                (PUBLIC, "public"),
                (INFORMATION, "information_schema"),
                (HUBBUB, "hubbub"),
            )
        ],
        "pg_catalog.pg_class": [_class(table, numbers) for table in tables],
        "pg_catalog.pg_attribute": [row for table in tables for row in _attributes(table, numbers)],
        "pg_catalog.pg_type": [_type(*each) for each in _PG_TYPES],
        "pg_catalog.pg_description": list(_descriptions(tables, numbers)),
        "pg_catalog.pg_tables": [
            {"schemaname": table.schema, "tablename": table.name, "tableowner": "", "hasindexes": False}
            for table in tables
        ],
        "pg_catalog.pg_database": [_database()],
        "pg_catalog.pg_am": [{"oid": _HEAP, "amname": "heap", "amtype": "t"}],
        "pg_catalog.pg_tablespace": [{"oid": 1663, "spcname": "pg_default", "spcowner": OWNER}],
        "pg_catalog.pg_roles": [_role()],
        "pg_catalog.pg_user": [{"usename": "", "usesysid": OWNER, "usesuper": False, "usecreatedb": False}],
        "pg_catalog.pg_language": [],
        "pg_catalog.pg_collation": [{"oid": 100, "collname": "default", "collnamespace": PG_CATALOG}],
        "information_schema.schemata": [
            {"catalog_name": "", "schema_name": name, "schema_owner": ""}
            for name in ("public", "hubbub", "information_schema", "pg_catalog")
        ],
        "information_schema.tables": [_table(table) for table in tables],
        "information_schema.columns": [row for table in tables for row in _columns(table)],
        "information_schema.table_privileges": [
            {"grantee": "", "table_catalog": "", "table_schema": table.schema, "table_name": table.name}
            | {"privilege_type": "SELECT", "is_grantable": "NO"}
            for table in tables
        ],
    }


def _class(table: PgTable, numbers: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    flags = ("relhasindex", "relisshared", "relhasrules", "relhastriggers", "relhassubclass", "relrowsecurity")
    more = ("relforcerowsecurity", "relispartition")
    return {
        "oid": numbers[table.schema, table.name],
        "relname": table.name,
        "relnamespace": PUBLIC if table.schema == "public" else HUBBUB,
        "reltype": 0,
        "reloftype": 0,
        "relowner": OWNER,
        "relam": _HEAP,
        "relfilenode": 0,
        "reltablespace": 0,
        "relpages": 0,
        "reltuples": -1.0,
        "relallvisible": 0,
        "reltoastrelid": 0,
        "relpersistence": "p",
        "relkind": "r",
        "relnatts": len(table.columns),
        "relchecks": 0,
        "relispopulated": True,
        "relreplident": "d",
        **dict.fromkeys((*flags, *more), False),
    }


def _attributes(table: PgTable, numbers: Mapping[tuple[str, str], int]) -> Iterator[dict[str, Any]]:
    for place, column in enumerate(table.columns, 1):
        kind = KINDS[column.kind]
        yield {
            "attrelid": numbers[table.schema, table.name],
            "attname": column.name,
            "atttypid": kind.oid,
            "attlen": kind.size,
            "attnum": place,
            "attndims": 0,
            "attcacheoff": -1,
            "atttypmod": -1,
            "attstattarget": -1,
            "attbyval": kind.size > 0,
            "attstorage": "x" if kind is STRING else "p",
            "attnotnull": not column.nullable,
            "atthasdef": False,
            "atthasmissing": False,
            "attidentity": "",
            "attgenerated": "",
            "attisdropped": False,
            "attislocal": True,
            "attinhcount": 0,
            "attcollation": 100 if kind is STRING else 0,
            "attcompression": "",
        }


def _type(oid: int, name: str, size: int, kind: str, category: str, element: int, array: int) -> dict[str, Any]:
    return {
        "oid": oid,
        "typname": name,
        "typnamespace": PG_CATALOG,
        "typowner": OWNER,
        "typlen": size,
        "typbyval": 0 < size <= 8,
        "typtype": kind,
        "typcategory": category,
        "typispreferred": False,
        "typisdefined": True,
        "typdelim": ",",
        "typrelid": 0,
        "typsubscript": "-",
        "typelem": element,
        "typarray": array,
        "typinput": "array_in" if category == "A" else f"{name}in",
        "typoutput": "array_out" if category == "A" else f"{name}out",
        "typreceive": "array_recv" if category == "A" else f"{name}recv",
        "typsend": f"{name}send",
        "typalign": "i",
        "typstorage": "x",
        "typnotnull": False,
        "typbasetype": 0,
        "typtypmod": -1,
        "typndims": 0,
        "typcollation": 100 if category == "S" else 0,
    }


def _descriptions(tables: Sequence[PgTable], numbers: Mapping[tuple[str, str], int]) -> Iterator[dict[str, Any]]:
    for table in tables:
        place = {"objoid": numbers[table.schema, table.name], "classoid": 1259}
        if table.remark:
            yield place | {"objsubid": 0, "description": table.remark}
        for number, column in enumerate(table.columns, 1):
            if column.remark:
                yield place | {"objsubid": number, "description": column.remark}


def _database() -> dict[str, Any]:
    return {
        "oid": DATABASE,
        "datname": "",
        "datdba": OWNER,
        "encoding": 6,
        "datlocprovider": "c",
        "datistemplate": False,
        "datallowconn": True,
        "datconnlimit": -1,
        "dattablespace": 1663,
        "datcollate": "C",
        "datctype": "C",
    }


def _role() -> dict[str, Any]:
    flags = ("rolsuper", "rolcreaterole", "rolcreatedb", "rolreplication", "rolbypassrls")
    role = {"oid": OWNER, "rolname": "", "rolinherit": True, "rolcanlogin": True, "rolconnlimit": -1}
    return role | dict.fromkeys(flags, False)


def _table(table: PgTable) -> dict[str, Any]:
    return {
        "table_catalog": "",
        "table_schema": table.schema,
        "table_name": table.name,
        "table_type": _TABLE_TYPE,
        "is_insertable_into": "NO",
        "is_typed": "NO",
    }


def _columns(table: PgTable) -> Iterator[dict[str, Any]]:
    for place, column in enumerate(table.columns, 1):
        kind = KINDS[column.kind]
        bits = _LENGTHS.get(kind.name)
        yield {
            "table_catalog": "",
            "table_schema": table.schema,
            "table_name": table.name,
            "column_name": column.name,
            "ordinal_position": place,
            "is_nullable": "YES" if column.nullable else "NO",
            "data_type": kind.name,
            "numeric_precision": bits,
            "numeric_precision_radix": None if bits is None else 2,
            "numeric_scale": 0 if kind is INT8 else None,
            "datetime_precision": 6 if kind is TIMESTAMP else 0 if kind is DATE else None,
            "udt_catalog": "",
            "udt_schema": "pg_catalog",
            "udt_name": next(each[1] for each in _PG_TYPES if each[0] == kind.oid),
            "dtd_identifier": str(place),
            "is_self_referencing": "NO",
            "is_identity": "NO",
            "is_generated": "NEVER",
            "is_updatable": "NO",
        }
