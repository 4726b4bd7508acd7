"""The JSON Schema of hubbub.yaml, for completion and checks in editors.

Tested in tests/config/test_summary.py.
"""

from hubbub.accounting.review_rule import MAX_PEOPLE
from hubbub.config.disclosure import MAX_RULE
from hubbub.config.sandbox import MAX_ROWS
from hubbub.core.list_columns import MAX_ELEMENTS
from hubbub.core.schema import Kind

_QUERY_OPTIONS: dict[str, object] = {
    "type": "object",
    "additionalProperties": False,
    "description": "Options of queries that set none.",
    "properties": {
        name: {"type": ["string", "number", "boolean"]}
        for name in ("epsilon", "within", "delta", "groups", "rows", "intervals", "free")
    },
}
_NUMBER = {"type": ["number", "string"]}
_EPSILON = {**_NUMBER, "description": "Privacy budget ε. Someone 50% sure can become at most e^ε/(1+e^ε) sure."}
_DELTA = {**_NUMBER, "description": "Probability that the guarantee fails; keep it far below 1 / (number of people)."}
_CAP = {
    "type": "object",
    "additionalProperties": False,
    "required": ["epsilon"],
    "properties": {"epsilon": _EPSILON, "delta": _DELTA},
}
_DAY = {"type": "string", "format": "date"}
_FAIR = {
    "oneOf": [
        {"type": "boolean"},
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "until": {**_DAY, "description": "The first day on which they may use everything that is left."},
                "needs": {
                    "type": "object",
                    "additionalProperties": _NUMBER,
                    "description": "Analysts who need at most this part of the budget, between 0 and 1.",
                },
            },
        },
    ],
    "description": "Analysts who share this budget have equal shares of it.",
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
        "elements": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_ELEMENTS,
            "description": "The most elements of a list; `bounds` and `values` are those of its elements.",
        },
        "hidden": {"type": "boolean", "description": "Queries cannot use this column."},
        "nullable": {"type": "boolean", "description": "GROUP BY gives NULL a group of its own."},
        "required": {
            "type": "boolean",
            "description": "No value is NULL. Under `unit: row` and `relation: replace`, averages then need no count.",
        },
    },
}
_NAMES = {"type": ["array", "string"], "items": {"type": "string"}}
_UNIT = {
    "description": "Privacy unit: `row`, all rows that share one value of a column, or two owners of each row.",
    "oneOf": [
        {"const": "row"},
        {
            "type": "array",
            "minItems": 2,
            "maxItems": 2,
            "description": "Two owners of each row: the guarantee holds for each of them with all of its rows.",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["column", "entity"],
                "properties": {
                    "column": {"type": "string"},
                    "entity": {"type": "string", "pattern": r"^[\w.@+-]{1,100}$"},
                    "max_rows": {"type": "integer", "minimum": 1},
                },
            },
        },
        {
            "type": "object",
            "additionalProperties": False,
            "anyOf": [{"required": ["column"]}, {"required": ["via", "of"]}],
            "properties": {
                "column": {"type": "string"},
                "via": {
                    **_NAMES,
                    "description": "Columns that refer to the key of the table `of`: a row belongs to the owner of the "
                    "row that it refers to.",
                },
                "of": {"type": "string", "description": "The dataset that `via` refers to."},
                "per": {
                    "type": "object",
                    "minProperties": 1,
                    "maxProperties": 1,
                    "additionalProperties": False,
                    "properties": {per: {"type": "string"} for per in ("hour", "day", "week", "month")},
                    "description": "Protect one period of a person instead of the whole person, such as "
                    "`{day: visited_at}`; k periods of a person cost k times as much privacy.",
                },
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
_BLOCK = {"type": ["string", "integer"]}
_SHOW = {
    "enum": ["rounded", "exact", "hidden"],
    "description": "How analysts see budgets that they share with others: rounded to tenths (default), "
    "exact, or hidden. Their own charges are always exact.",
}
_DATASET = {
    "type": "object",
    "additionalProperties": False,
    "required": ["source"],
    "properties": {
        "source": {
            "type": "string",
            "description": "A .csv or .parquet file, a folder/ of Parquet files, duckdb:file#table, "
            "sqlite:file#table, delta:folder, postgresql://user@host/database/schema.table, spark:sc://host:port/table.",
        },
        "version": {
            "type": ["string", "object"],
            "additionalProperties": False,
            "properties": {"checksum": {"const": True}},
            "description": "A column that increases with every change; only for tables on a server. In PostgreSQL also"
            " {checksum: true}: read the rows of a large table to see whether it changed.",
        },
        "failures": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1000,
            "description": "Failed queries after which an analyst must wait for the owner's review; default 3.",
        },
        "public": {"type": "boolean"},
        "unique": _NAMES,
        "key": {**_NAMES, "description": "Columns that identify a row of a private table; checked with its data."},
        "unit": _UNIT,
        "relation": {"enum": ["add_remove", "replace"]},
        "share": {
            "enum": ["none", "group", "everyone"],
            "description": "Whose releases may answer an analyst's queries for free, besides their own; default none.",
        },
        "reuse": {
            "enum": ["always", "asked"],
            "description": "Answer queries for free where earlier releases are as exact as the price would be (always, "
            "the default), or only those that ask for it with `free`.",
        },
        "arrivals": {"enum": ["public"], "description": "The number of arrivals in its streams is public."},
        "size": {
            "type": "object",
            "additionalProperties": False,
            "required": ["rows"],
            "properties": {"rows": {"type": "integer", "minimum": 1, "maximum": 10**12}},
            "description": "Roughly how many rows a private table has. Public: analysts see it, and queries are planned"
            " by it.",
        },
        "suppress_below": {
            "type": "integer",
            "minimum": 2,
            "maximum": MAX_RULE,
            "description": "Numbers of a group whose noisy count is below this are not shown. A rule beside the noise.",
        },
        "round_to": {
            "oneOf": [{"type": "integer", "minimum": 2, "maximum": MAX_RULE}, {"enum": ["noise"]}],
            "description": "Counts are rounded to multiples of this; or all numbers by the size of their noise.",
        },
        "sandbox": {
            "description": "Whether analysts may try queries on made-up rows (default: on), on how many, or on the rows"
            " of a release of synthetic data.",
            "oneOf": [
                {"type": "boolean"},
                {"enum": ["on", "off"]},
                {
                    "type": "object",
                    "additionalProperties": False,
                    "minProperties": 1,
                    "maxProperties": 1,
                    "properties": {
                        "rows": {"type": "integer", "minimum": 1, "maximum": MAX_ROWS},
                        "release": {"type": "integer", "minimum": 1},
                    },
                },
            ],
        },
        "review": {
            "description": "Answers that somebody must approve before their analyst can read them: every one (true), or"
            " those that cost more than `above`, or come from an analysis (`calls`).",
            "oneOf": [
                {"type": "boolean"},
                {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "above": _EPSILON,
                        "calls": {"type": "boolean"},
                        "people": {
                            "type": "integer",
                            "minimum": 1,
                            "maximum": MAX_PEOPLE,
                            "description": "How many different people must approve an answer; default 1.",
                        },
                    },
                },
            ],
        },
        "columns": {"type": ["object", "null"], "additionalProperties": _COLUMN},
        "blocks": {
            "type": "object",
            "additionalProperties": False,
            "required": ["column", "by", "from", "budget"],
            "description": "Each period of a date or timestamp column has a budget of its own: a query spends in the "
            "blocks that its conditions allow. Caps of analysts and groups then hold in each block.",
            "properties": {
                "column": {"type": "string"},
                "by": {"enum": ["day", "week", "month", "year"]},
                "from": {**_BLOCK, "description": "The first block; earlier rows are never read."},
                "until": {**_BLOCK, "description": "The last block; by default the current one."},
                "budget": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["epsilon"],
                    "properties": {
                        "epsilon": _EPSILON,
                        "delta": _DELTA,
                        "per_query": _EPSILON,
                        "show": _SHOW,
                        "fair": _FAIR,
                    },
                },
            },
        },
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
                "show": _SHOW,
                "fair": _FAIR,
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
        "key_command": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "description": "Command that prints the key, such as the client of a key management service; no shell.",
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
        "telemetry": {
            "type": "object",
            "additionalProperties": False,
            "description": "Where the audit log and traces go, without queries and data.",
            "properties": {
                "otlp": {"type": "string", "description": "Address of an OpenTelemetry collector (OTLP over HTTP)."},
                "headers_file": {"type": "string", "description": "File with headers for the collector."},
                "syslog": {"type": "string", "description": "Socket of syslog, such as /dev/log."},
            },
        },
        "postgres": {
            "type": "object",
            "additionalProperties": False,
            "required": ["port"],
            "description": "The port for PostgreSQL clients; by default there is none.",
            "properties": {
                "port": {"type": "integer", "minimum": 0, "maximum": 65535},
                "host": {"type": "string", "description": "Address; by default that of HTTP."},
                "cleartext": {"type": "boolean", "description": "Accept unencrypted connections from other machines."},
                "password": {"type": "boolean", "description": "Ask for the token itself, over TLS only."},
                "connections": {"type": "integer", "minimum": 1, "description": "Most connections of a process."},
                "analysts": {"type": "object", "additionalProperties": _QUERY_OPTIONS},
                "applications": {"type": "object", "additionalProperties": _QUERY_OPTIONS},
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
                "additionalProperties": {
                    **_CAP,
                    "properties": {"epsilon": _EPSILON, "delta": _DELTA, "fair": _FAIR},
                },
                "properties": {"members": {"type": "array", "minItems": 1, "items": {"type": "string"}}},
            },
        },
        "projects": {
            "type": "object",
            "description": "Some members of a group share a part of its budget until a day; what they do not use "
            "returns to the group.",
            "additionalProperties": {
                "type": "object",
                "required": ["members", "group", "until"],
                "additionalProperties": _CAP,
                "properties": {
                    "members": {"type": "array", "minItems": 1, "items": {"type": "string"}},
                    "group": {"type": "string"},
                    "until": {**_DAY, "description": "The first day on which it has ended."},
                },
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
                "witness": {
                    "type": "string",
                    "description": "A log that only grows, kept by somebody else: file:PATH, or "
                    "postgresql://user@host/database.",
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
                "copy": {
                    "type": "boolean",
                    "default": False,
                    "description": "Copy tables of PostgreSQL into this process and query them here: faster where "
                    "privacy units have many rows.",
                },
            },
        },
        "server": _SERVER,
        "max_cells": {
            "type": "integer",
            "minimum": 1,
            "maximum": 100_000_000,
            "default": 30_000_000,
            "description": "Maximum number of values (rows times columns) in one release; of analyses and of answers "
            "that are computed from noisy results, at most 3,900,000.",
        },
    },
}
