"""The JSON Schema of hubbub.yaml, for editors that complete and check as one types."""

from hubbub.core.schema import Kind

_NUMBER = {"type": ["number", "string"]}
_EPSILON = {**_NUMBER, "description": "Privacy loss: what may be learned. Somebody 50/50 gets to e^ε/(1+e^ε) at most."}
_DELTA = {**_NUMBER, "description": "Chance that the promise fails; far below 1 / (number of people)."}
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
        "type": {"enum": [kind.value for kind in Kind], "description": "Needed for CSV files, which do not say."},
        "bounds": {
            "type": ["array", "null"],
            "items": _NUMBER,
            "minItems": 2,
            "maxItems": 2,
            "description": "Smallest and largest number or date; others are clamped. Allows sums and averages.",
        },
        "step": {**_NUMBER, "description": "The grid on which reals are summed."},
        "values": {"type": ["array", "null"], "minItems": 1, "description": "All keys. Allows GROUP BY."},
        "other": {"description": "The key for everything outside `values`; without it such rows vanish from groups."},
        "hidden": {"type": "boolean", "description": "Cannot be named in a query."},
    },
}
_UNIT = {
    "description": "Who is protected: `row`, or everything that belongs to one value of a column.",
    "oneOf": [
        {"const": "row"},
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["column"],
            "properties": {
                "column": {"type": "string"},
                "groups": {"type": "integer", "minimum": 1},
                "rows": {"type": "integer", "minimum": 1},
                "entity": {
                    "type": "string",
                    "pattern": r"^[\w.@+-]{1,100}$",
                    "description": "Who the unit is, such as patient. Private tables can be joined and united only if "
                    "they declare the same entity: equal values of their columns are then one person.",
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
        "version": {"type": "string", "description": "A column of a server's table that rises with every change."},
        "failures": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1000,
            "description": "Queries of one analyst that may fail after their charge before the owner must look; 3.",
        },
        "public": {"type": "boolean"},
        "unique": {"type": ["array", "string"], "items": {"type": "string"}},
        "unit": _UNIT,
        "relation": {"enum": ["add_remove", "replace"]},
        "arrivals": {"enum": ["public"], "description": "Anybody may know how many arrivals its streams take."},
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
                    "description": "What an analyst is told of budgets that others spend from too: in tenths of the "
                    "budget (default), exactly, or nothing. Their own spending is always exact.",
                },
            },
        },
    },
}
_SERVER = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "host": {"type": "string", "description": "Address to listen on; one that others reach needs TLS or a proxy."},
        "port": {"type": "integer", "minimum": 0, "maximum": 65535},
        "tls": {
            "type": "object",
            "additionalProperties": False,
            "required": ["certificate", "key"],
            "properties": {"certificate": {"type": "string"}, "key": {"type": "string"}},
        },
        "behind_proxy": {"type": "boolean", "description": "A proxy on the way does TLS."},
        "proxies": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Addresses of proxies whose word about the client's address is believed.",
        },
        "public_url": {"type": "string", "description": "Where people reach it, such as https://hubbub.example."},
        "quantum": {**_NUMBER, "description": "Seconds; answers leave at multiples of it. 0 shows how long they took."},
        "workers": {"type": "integer", "minimum": 1, "description": "Queries that run at once."},
        "queue": {"type": "integer", "minimum": 0, "description": "Queries that may wait."},
        "per_minute": {"type": "integer", "minimum": 1, "description": "Requests of one person."},
        "free_workers": {
            "type": "integer",
            "minimum": 2,
            "maximum": 64,
            "description": "Threads for estimates, pages and other free requests; nobody gets more than half of them.",
        },
        "free_seconds": {
            "type": "integer",
            "minimum": 1,
            "maximum": 600,
            "description": "Seconds after which an analyst's free request is stopped.",
        },
        "secret_file": {"type": "string", "description": "What sessions are signed with; without it one is drawn."},
        "oidc": {
            "type": "object",
            "additionalProperties": False,
            "required": ["issuer", "audience"],
            "properties": {
                "issuer": {"type": "string"},
                "audience": {"type": "string"},
                "claim": {"type": "string", "description": "The claim that holds an analyst's name; default sub."},
                "keys": {"type": "string", "description": "Address of the issuer's keys; default: looked up."},
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
            "description": "Analysts who were removed once and are the same people again; otherwise such a name is "
            "refused. Their old tokens stay revoked.",
        },
        "ledger": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "database": {"type": "string"},
                "anchor": {"type": "string"},
                "seeds": {
                    "type": "string",
                    "description": "Folder for the seeds of charges without a release; default: one in memory.",
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
                "seconds": {"type": "integer", "description": "for one query"},
                "hash": {
                    "enum": ["engine", "portable"],
                    "description": "Chooses the rows that a unit keeps; portable: the same ones on every engine.",
                },
            },
        },
        "server": _SERVER,
        "max_cells": {
            "type": "integer",
            "minimum": 1,
            "maximum": 3_900_000,
            "default": 1_000_000,
            "description": "Values (rows times columns) that one release may have; larger ones are refused.",
        },
    },
}
