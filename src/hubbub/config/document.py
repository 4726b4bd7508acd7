"""Read a hubbub.yaml document: safe YAML, known keys, and errors that name the place in the file."""

from collections.abc import Collection, Mapping
from copy import deepcopy
from difflib import get_close_matches
from functools import lru_cache
from typing import NoReturn, cast

import yaml

from hubbub.accounting.policy import is_name
from hubbub.errors import ConfigError

#: The keys of each section of hubbub.yaml. Add a new key here.
KEYS: Mapping[str, frozenset[str]] = {
    "": frozenset(
        {
            "version",
            "datasets",
            "analysts",
            "groups",
            "projects",
            "returning",
            "ledger",
            "engine",
            "server",
            "max_cells",
        }
    ),
    "datasets.*": frozenset(
        {
            "source",
            "unit",
            "relation",
            "columns",
            "public",
            "unique",
            "budget",
            "version",
            "failures",
            "arrivals",
            "key",
            "share",
            "reuse",
            "blocks",
            "size",
            "review",
            "sandbox",
            "suppress_below",
            "round_to",
        }
    ),
    "datasets.*.blocks": frozenset({"column", "by", "from", "until", "budget"}),
    "datasets.*.blocks.budget": frozenset({"epsilon", "delta", "per_query", "show", "fair"}),
    "datasets.*.size": frozenset({"rows"}),
    "datasets.*.sandbox": frozenset({"rows", "release"}),
    "datasets.*.review": frozenset({"above", "calls", "people"}),
    "datasets.*.version": frozenset({"checksum"}),
    "datasets.*.unit": frozenset({"column", "groups", "rows", "rows_total", "max_rows", "entity", "via", "of", "per"}),
    "datasets.*.unit.per": frozenset({"hour", "day", "week", "month"}),
    "datasets.*.columns.*": frozenset(
        {"type", "elements", "bounds", "step", "values", "other", "hidden", "nullable", "required"}
    ),
    "datasets.*.budget": frozenset({"epsilon", "delta", "per_query", "renewal", "show", "fair"}),
    "datasets.*.budget.renewal": frozenset({"per", "epsilon", "delta"}),
    "ledger": frozenset({"database", "anchor", "seeds", "witness"}),
    "engine": frozenset({"memory", "disk", "threads", "seconds", "hash", "copy"}),
    "server": frozenset(
        {
            "host",
            "port",
            "tls",
            "behind_proxy",
            "proxies",
            "public_url",
            "quantum",
            "workers",
            "queue",
            "per_minute",
            "free_workers",
            "free_seconds",
            "secret_file",
            "key_command",
            "oidc",
            "postgres",
            "telemetry",
        }
    ),
    "server.telemetry": frozenset({"otlp", "headers_file", "syslog"}),
    "server.tls": frozenset({"certificate", "key"}),
    "server.oidc": frozenset({"issuer", "audience", "claim", "keys", "owners", "auditors"}),
    "server.postgres": frozenset({"port", "host", "cleartext", "password", "connections", "analysts", "applications"}),
    "server.postgres.analysts.*": frozenset({"epsilon", "within", "delta", "groups", "rows", "intervals", "free"}),
    "server.postgres.applications.*": frozenset({"epsilon", "within", "delta", "groups", "rows", "intervals", "free"}),
    "cap": frozenset({"epsilon", "delta"}),
    "groups.*.*": frozenset({"epsilon", "delta", "fair"}),
    "fair": frozenset({"until", "needs"}),
}

NAME_RULE = "A name has 1 to 100 letters, digits, or any of . _ @ + - and no spaces."
MAX_CHARACTERS = 1_000_000
#: Brackets that may be open at once.
MAX_DEPTH = 50
_MAX_NUMBER_LENGTH = 400
#: Nodes of the document after its aliases are expanded.
_MAX_NODES = 1_000_000
#: Documents that are kept: opening a session or a server reads one several times.
_KEPT = 4
#: PyYAML raises these, besides its own errors, for an impossible date or a value that does not match its tag.
_PARSE_ERRORS = (ValueError, ArithmeticError, AttributeError, LookupError, TypeError)


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, which also rejects duplicate keys and deep nesting.

    For each token, the scanner looks at all open brackets, so its time is quadratic in their number.
    """

    flow_level: int

    def fetch_flow_collection_start(self, TokenClass: type) -> None:  # noqa: N803 - the name in PyYAML
        """Open a bracket, unless too many are open already."""
        if self.flow_level >= MAX_DEPTH:
            raise _too_deep()
        super().fetch_flow_collection_start(TokenClass)


def _too_deep() -> ConfigError:
    return ConfigError("HB400", "The file is nested too deeply.", "Follow the example in the README.")


def _construct_mapping(loader: _Loader, node: yaml.MappingNode) -> dict[object, object]:
    """Build a mapping; where plain YAML lets the last duplicate key win, raise an error."""
    keys: set[object] = set()
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            continue
        key = loader.construct_object(key_node)
        line = key_node.start_mark.line + 1
        if not isinstance(key, str | int | float | bool | None):
            raise ConfigError("HB408", f"The key in line {line} is not text.", NAME_RULE)
        if key in keys:
            raise ConfigError("HB406", f"Line {line} repeats the key {key!r}.", "Remove one of the two.")
        keys.add(key)
    return loader.construct_mapping(node, deep=True)


def _construct_number(loader: _Loader, node: yaml.ScalarNode) -> object:
    """Read a number of limited length: reading YAML's 1:30:00 takes quadratic time."""
    if len(node.value) > _MAX_NUMBER_LENGTH:
        raise ConfigError(
            "HB400",
            f"The number in line {node.start_mark.line + 1} has more than {_MAX_NUMBER_LENGTH} characters.",
            "Shorten it, or put it in quotes if it is text.",
        )
    is_integer = node.tag == "tag:yaml.org,2002:int"
    return loader.construct_yaml_int(node) if is_integer else loader.construct_yaml_float(node)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping)
for _tag in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _construct_number)


def _count_nodes(node: yaml.Node, counts: dict[int, int]) -> int:
    """Count the nodes of a document with all aliases expanded: a few lines of aliases can mean billions of nodes."""
    if id(node) not in counts:
        counts[id(node)] = _MAX_NODES  # a node that contains itself never ends
        parts = node.value if isinstance(node.value, list) else []
        children = [child for part in parts for child in (part if isinstance(part, tuple) else (part,))]
        counts[id(node)] = 1 + sum(_count_nodes(child, counts) for child in children)
    return counts[id(node)]


def parse_yaml(text: str) -> object:
    """Parse YAML safely and in bounded time, and reject duplicate keys; each call returns objects of its own."""
    return deepcopy(_parse(text))


@lru_cache(maxsize=_KEPT)
def _parse(text: str) -> object:
    if len(text) > MAX_CHARACTERS:
        raise ConfigError("HB400", f"The file has more than {MAX_CHARACTERS:,} characters.", "Declare fewer values.")
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is not None and _count_nodes(node, {}) > _MAX_NODES:
            raise ConfigError("HB400", "The file is too large once its aliases are expanded.", "Use fewer aliases.")
        return None if node is None else cast(object, loader.construct_document(node))
    except RecursionError:
        raise _too_deep() from None
    except (yaml.YAMLError, *_PARSE_ERRORS) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" (line {mark.line + 1})" if mark is not None else ""
        raise ConfigError(
            "HB400", f"The file is not valid YAML{line}.", "Check indentation, colons and quotes there."
        ) from error


def expect_mapping(value: object, path: str) -> dict[str, object]:
    """Accept a mapping whose keys are text."""
    if not isinstance(value, dict):
        reject("HB403", path or "The file", "is not a mapping of `name: value`", "See the example in the README.")
    for key in value:
        if not isinstance(key, str):
            reject("HB408", f"{path}.{key}".lstrip("."), f"has the key {key!r}, which is not text", "Put it in quotes.")
    return value


def expect_names(value: object, path: str) -> dict[str, object]:
    """Accept a mapping whose keys are names."""
    if value is None:
        reject("HB402", path, "is missing or empty", f"Add an entry under `{path}:`.")
    entries = expect_mapping(value, path)
    for name in entries:
        if not is_name(name):
            reject("HB408", f"{path}.{name!r}", "is not a valid name", NAME_RULE)
    return entries


def check_keys(entries: Mapping[str, object], path: str, keys: frozenset[str]) -> None:
    """Reject a key that is not one of `keys`."""
    for key in entries:
        if key not in keys:
            reject_unknown("HB401", f"{path}.{key}".lstrip("."), key, "key", keys)


def reject_unknown(code: str, path: str, name: str, what: str, names: Collection[str]) -> NoReturn:
    """Reject an unknown name, and suggest the nearest known one."""
    near = get_close_matches(name, names, 1)
    hint = f"Did you mean {near[0]!r}?" if near else f"Known names: {', '.join(sorted(names)) or 'none'}."
    reject(code, path, f"is not a known {what}", hint)


def reject(code: str, path: str, why: str, remedy: str) -> NoReturn:
    """Reject the value at this path of the file."""
    raise ConfigError(code, f"{path} {why}.", remedy)
