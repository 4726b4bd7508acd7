"""The JSON Schema of hubbub.yaml, for completion and checks in editors.

Tested in tests/config/test_summary.py.
"""

from hubbub.core.schema import Kind

_NUMBER = {"type": ["number", "string"]}
_EPSILON = {**_NUMBER, "description": "Privacy budget ε. Someone 50% sure can become at most e^ε/(1+e^ε) sure."}
_DELTA = {**_NUMBER, "description": "Probability that the guarantee fails; keep it far below 1 / (number of people)."}
_CAP = {
    "type": "object",
    "additionalProperties": False,
    "required": ["epsilon"],
    "properties": {"epsilon": _EPSILON, "delta": _DELTA},
}
_COLUMN = {
    "type": ["object", "null"],
    "additionalProperties": False,
    "properties": {
        "type": {"enum": [kind.value for kind in Kind], "description": "Required for CSV files, which have no types."},
        "bounds": {
            "oneOf": [
                {"const": "auto"},
                {"type": ["array", "null"], "items": _NUMBER, "minItems": 2, "maxItems": 2},
            ],
            "description": "Smallest and largest number or date; values outside are clamped. Allows sums and averages. "
            "With `auto` each query finds them privately.",
        },
        "step": {**_NUMBER, "description": "Step of a decimal: comparisons are exact, sums are rounded to it."},
        "values": {"type": ["array", "null"], "minItems": 1, "description": "All group keys. Allows GROUP BY."},
        "other": {"description": "Key for all values that are not in `values`; without it, GROUP BY omits such rows."},
        "hidden": {"type": "boolean", "description": "Queries cannot use this column."},
        "nullable": {"type": "boolean", "description": "GROUP BY gives NULL a group of its own."},
        "required": {
            "type": "boolean",
            "description": "No value is NULL. Under `unit: row` and `relation: replace`, averages then need no count.",
        },
    },
}
_UNIT = {
    "description": "Privacy unit: `row`, or all rows that share one value of a column.",
    "oneOf": [
        {"const": "row"},
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["column"],
            "properties": {
                "column": {"type": "string"},
                "groups": {"oneOf": [{"const": "auto"}, {"type": "integer", "minimum": 1}]},
                "rows": {"oneOf": [{"const": "auto"}, {"type": "integer", "minimum": 1}]},
                "rows_total": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "The most rows of one unit that a query uses in all groups together.",
                },
                "max_rows": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "With `rows: auto`, the most rows of one unit that a query can use.",
                },
                "entity": {
                    "type": "string",
                    "pattern": r"^[\w.@+-]{1,100}$",
                    "description": "The kind of privacy unit, such as patient. Private tables can be joined only if "
                    "they declare the same entity; equal values of their columns then mean the same person.",
                },
            },
        },
    ],
}
_DATASET = {
    "type": "object",
    "additionalProperties": False,
    "required": ["source"],
    "properties": {
        "source": {
            "type": "string",
            "description": "A .csv or .parquet file, duckdb:file#table, "
            "sqlite:file#table, postgresql://user@host/database/schema.table, spark:sc://host:port/table.",
        },
        "version": {
            "type": "string",
            "description": "A column that increases with every change; only for tables on a server.",
        },
        "failures": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1000,
            "description": "Failed queries after which an analyst must wait for the owner's review; default 3.",
        },
        "public": {"type": "boolean"},
        "unique": {"type": ["array", "string"], "items": {"type": "string"}},
        "unit": _UNIT,
        "relation": {"enum": ["add_remove", "replace"]},
        "arrivals": {"enum": ["public"], "description": "The number of arrivals in its streams is public."},
        "columns": {"type": ["object", "null"], "additionalProperties": _COLUMN},
        "budget": {
            "type": "object",
            "additionalProperties": False,
            "required": ["epsilon"],
            "properties": {
                "epsilon": _EPSILON,
                "delta": _DELTA,
                "per_query": _EPSILON,
                "renewal": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["per", "epsilon"],
                    "properties": {"per": {"enum": ["day", "month"]}, "epsilon": _EPSILON, "delta": _DELTA},
                },
                "show": {
                    "enum": ["rounded", "exact", "hidden"],
                    "description": "How analysts see budgets that they share with others: rounded to tenths (default), "
                    "exact, or hidden. Their own charges are always exact.",
                },
            },
        },
    },
}
_SERVER = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "host": {
            "type": "string",
            "description": "Address to listen on; an address that other machines can reach requires TLS or a proxy.",
        },
        "port": {"type": "integer", "minimum": 0, "maximum": 65535},
        "tls": {
            "type": "object",
            "additionalProperties": False,
            "required": ["certificate", "key"],
            "properties": {"certificate": {"type": "string"}, "key": {"type": "string"}},
        },
        "behind_proxy": {"type": "boolean", "description": "A reverse proxy terminates TLS."},
        "proxies": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Addresses of proxies that are trusted to report the client's address.",
        },
        "public_url": {"type": "string", "description": "Public URL of the server, such as https://hubbub.example."},
        "quantum": {
            **_NUMBER,
            "description": "Response-time quantum in seconds; 0 reveals how long queries take.",
        },
        "workers": {
            "type": "integer",
            "minimum": 1,
            "description": "Maximum number of queries that run at the same time.",
        },
        "queue": {"type": "integer", "minimum": 0, "description": "Maximum number of queries that wait."},
        "per_minute": {
            "type": "integer",
            "minimum": 1,
            "description": "Maximum number of requests per minute and person.",
        },
        "free_workers": {
            "type": "integer",
            "minimum": 2,
            "maximum": 64,
            "description": "Threads for estimates, pages and other free requests; one person can use at most half.",
        },
        "free_seconds": {
            "type": "integer",
            "minimum": 1,
            "maximum": 600,
            "description": "Time limit in seconds for an analyst's free request.",
        },
        "secret_file": {
            "type": "string",
            "description": "File with the key that signs sessions; by default a random key.",
        },
        "oidc": {
            "type": "object",
            "additionalProperties": False,
            "required": ["issuer", "audience"],
            "properties": {
                "issuer": {"type": "string"},
                "audience": {"type": "string"},
                "claim": {"type": "string", "description": "Claim with the analyst's name; default sub."},
                "keys": {"type": "string", "description": "URL of the issuer's keys; default: discovered."},
                "owners": {"type": "array", "items": {"type": "string"}},
                "auditors": {"type": "array", "items": {"type": "string"}},
            },
        },
    },
}

SCHEMA: dict[str, object] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "hubbub.yaml",
    "type": "object",
    "additionalProperties": False,
    "required": ["version", "datasets"],
    "properties": {
        "version": {"const": 1},
        "datasets": {"type": "object", "minProperties": 1, "additionalProperties": _DATASET},
        "analysts": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": _CAP}},
        "groups": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["members"],
                "additionalProperties": _CAP,
                "properties": {"members": {"type": "array", "minItems": 1, "items": {"type": "string"}}},
            },
        },
        "returning": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Analysts who were removed and have returned. The name of a removed analyst is otherwise "
            "rejected. Old tokens stay revoked.",
        },
        "ledger": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "database": {"type": "string"},
                "anchor": {"type": "string"},
                "seeds": {
                    "type": "string",
                    "description": "Folder for the seeds of charges without a release; default: in memory.",
                },
            },
        },
        "engine": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "memory": {"type": "integer", "description": "MB"},
                "disk": {"type": "integer", "description": "MB"},
                "threads": {"type": "integer"},
                "seconds": {"type": "integer", "description": "Time limit of one query"},
                "hash": {
                    "enum": ["engine", "portable"],
                    "description": "Selects the rows of a privacy unit; portable: the same on every engine.",
                },
            },
        },
        "server": _SERVER,
        "max_cells": {
            "type": "integer",
            "minimum": 1,
            "maximum": 3_900_000,
            "default": 1_000_000,
            "description": "Maximum number of values (rows times columns) in one release.",
        },
    },
}
