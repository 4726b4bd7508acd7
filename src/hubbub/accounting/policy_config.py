"""The contract: the part of hubbub.yaml that budgets are made of, read and checked. No I/O here.

What cannot be is refused, with the place in the file: unknown keys (with the nearest known one), caps of nothing, caps
that contradict each other, members and datasets that do not exist. A cap without a δ has the δ of its dataset. The
parts that say where data is and what it looks like are known by name, and read by others.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fractions import Fraction
from typing import NoReturn, cast

import yaml

from hubbub.accounting.filters import Budget
from hubbub.accounting.policy import Cap, Policy
from hubbub.answers.budget import Scope, Show
from hubbub.core import numbers
from hubbub.errors import ConfigError, ParameterError

#: Every key that hubbub.yaml may have, by the place where it stands. Whoever reads a new key adds it here.
KEYS: Mapping[str, frozenset[str]] = {
    "": frozenset(
        {
            "version",
            "datasets",
            "analysts",
            "groups",
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
        }
    ),
    "datasets.*.unit": frozenset({"column", "groups", "rows", "entity"}),
    "datasets.*.columns.*": frozenset({"type", "bounds", "step", "values", "other", "hidden"}),
    "datasets.*.budget": frozenset({"epsilon", "delta", "per_query", "renewal", "show"}),
    "datasets.*.budget.renewal": frozenset({"per", "epsilon", "delta"}),
    "ledger": frozenset({"database", "anchor", "seeds"}),
    "engine": frozenset({"memory", "disk", "threads", "seconds", "hash"}),
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
            "oidc",
        }
    ),
    "server.tls": frozenset({"certificate", "key"}),
    "server.oidc": frozenset({"issuer", "audience", "claim", "keys", "owners", "auditors"}),
    "cap": frozenset({"epsilon", "delta"}),
}

_NAME = re.compile(r"[\w.@+-]{1,100}")
_NAMES = "A name has 1 to 100 letters, digits or any of . _ @ + - and no spaces."
#: Characters of a hubbub.yaml, and brackets that may be open at once.
LONGEST, DEEPEST = 1_000_000, 50
#: What PyYAML raises, beside its own errors, at a date that is none or a value that its tag does not fit.
_UNREADABLE = (ValueError, ArithmeticError, AttributeError, LookupError, TypeError)
#: Characters of a number: more than any fraction that a budget could sensibly be.
_LONGEST_NUMBER = 400
#: Nodes that a hubbub.yaml may have, its aliases written out.
_MOST = 1_000_000
_CLOSED = "A cap of 0 allows nothing: to close a dataset to somebody, leave their cap out."


@dataclass(frozen=True, slots=True)
class Places:
    """Where the ledger, its anchor and its seeds are, as far as hubbub.yaml says; paths are relative to that file."""

    database: str | None
    anchor: str | None
    seeds: str | None = None


class _Loader(yaml.SafeLoader):
    """The safe loader, but a key that stands twice is refused instead of the last one winning.

    At each token its scanner looks at all brackets that are open, so the time grows with the square of their number.
    """

    flow_level: int

    def fetch_flow_collection_start(self, TokenClass: type) -> None:  # noqa: N803 - the name in PyYAML
        """Open a bracket, unless too many are open already."""
        if self.flow_level >= DEEPEST:
            raise _too_deep()
        super().fetch_flow_collection_start(TokenClass)


def _too_deep() -> ConfigError:
    return ConfigError("HB400", "the file is nested too deep.", "Write it as in the example of the README.")


def _mapping_once(loader: _Loader, node: yaml.MappingNode) -> dict[object, object]:
    seen: set[object] = set()
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            continue
        key = loader.construct_object(key_node)
        if not isinstance(key, str | int | float | bool | None):
            raise ConfigError("HB408", f"line {key_node.start_mark.line + 1} has a name that is not text.", _NAMES)
        if key in seen:
            raise ConfigError(
                "HB406", f"line {key_node.start_mark.line + 1} gives {key!r} again.", "Keep one of the two."
            )
        seen.add(key)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping_once)


def _short_number(loader: _Loader, node: yaml.ScalarNode) -> object:
    """Read a number of a length that people write: YAML's 1:30:00 takes a time that grows with its square."""
    if len(node.value) > _LONGEST_NUMBER:
        raise ConfigError(
            "HB400", f"line {node.start_mark.line + 1} has a number of more than {_LONGEST_NUMBER} characters.",
            "Write it shorter, or in quotes if it is text.",
        )  # fmt: skip
    whole = node.tag == "tag:yaml.org,2002:int"
    return loader.construct_yaml_int(node) if whole else loader.construct_yaml_float(node)


for _tag in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _short_number)


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """Count the nodes of a document with every alias written out: a few lines of aliases can stand for billions."""
    if id(node) not in known:
        known[id(node)] = _MOST  # one that holds itself has no end
        parts = node.value if isinstance(node.value, list) else []
        inner = [each for part in parts for each in (part if isinstance(part, tuple) else (part,))]
        known[id(node)] = 1 + sum(_size(each, known) for each in inner)
    return known[id(node)]


def load(text: str) -> object:
    """Read YAML, safely and in bounded time, and refuse a key that stands twice in one place."""
    if len(text) > LONGEST:
        raise ConfigError("HB400", f"the file has more than {LONGEST:,} characters.", "Declare fewer values.")
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is not None and _size(node, {}) > _MOST:
            raise ConfigError("HB400", "the file is too large once its aliases are written out.", "Use fewer of them.")
        return None if node is None else cast(object, loader.construct_document(node))
    except RecursionError:
        raise _too_deep() from None
    except (yaml.YAMLError, *_UNREADABLE) as error:
        where = getattr(error, "problem_mark", None)
        line = f" (line {where.line + 1})" if where is not None else ""
        raise ConfigError(
            "HB400", f"the file is not YAML{line}.", "Check indentation, colons and quotes there."
        ) from error


def parse(text: str) -> Policy:
    """Read the policy in the text of hubbub.yaml."""
    return read(load(text))


def places(document: object) -> Places:
    """Read where the ledger and its anchor are to be."""
    entries = mapping(mapping(document, "").get("ledger", {}), "ledger")
    known(entries, "ledger", KEYS["ledger"])
    for key, value in entries.items():
        if not isinstance(value, str) or not value:
            refuse("HB403", f"ledger.{key}", "is not a path", "Write a path.")
    database, anchor, seeds = (cast(str | None, entries.get(key)) for key in ("database", "anchor", "seeds"))
    return Places(database, anchor, seeds)


def read(document: object) -> Policy:
    """Read the policy in a document (what YAML or JSON makes of hubbub.yaml)."""
    top = mapping(document, "")
    known(top, "", KEYS[""])
    places(top)
    version = top.get("version", "missing")
    if version != 1 or isinstance(version, bool):
        refuse("HB409", "version", f"is {version}, and this hubbub reads version 1", "Write `version: 1`.")
    datasets: dict[str, tuple[Cap, ...]] = {}
    public: set[str] = set()
    for name, value in named(top.get("datasets"), "datasets").items():
        caps = _dataset(name, value)
        if caps is None:
            public.add(name)
        else:
            datasets[name] = caps
    if not datasets and not public:
        refuse("HB402", "datasets", "names no dataset", "Add one, with a budget.")
    analysts: dict[str, dict[str, Cap]] = {}
    for name, value in named(top.get("analysts", {}), "analysts").items():
        analysts[name] = _caps(value, f"analysts.{name}", "analyst", name, datasets, public)
    groups: dict[str, tuple[tuple[str, ...], dict[str, Cap]]] = {}
    for name, value in named(top.get("groups", {}), "groups").items():
        path = f"groups.{name}"
        members = _members(mapping(value, path), path, analysts)
        rest = {key: cap for key, cap in mapping(value, path).items() if key != "members"}
        if not rest:
            refuse("HB402", path, "has no cap", f"Add one, such as `{next(iter(datasets), 'visits')}: {{epsilon: 1}}`.")
        groups[name] = (members, _caps(rest, path, "group", name, datasets, public))
    for members, _ in groups.values():
        for member in members:
            analysts.setdefault(member, {})
    _contradictions(analysts, groups)
    returning, show = _returning(top, analysts), _show(top)
    return Policy(datasets, analysts, groups, returning=returning, show=show)


def recorded(document: object) -> Policy:
    """Read a policy as the ledger has it: hubbub.yaml's, with what was declared about the datasets."""
    top = dict(mapping(document, ""))
    declarations = {name: mapping(each, name) for name, each in mapping(top.pop("declarations", {}), "").items()}
    return replace(read(top), declarations=declarations)


def _returning(top: Mapping[str, object], analysts: Mapping[str, object]) -> tuple[str, ...]:
    listed = top.get("returning", [])
    if not isinstance(listed, list):
        refuse("HB407", "returning", "is not a list of analysts", "Write `returning: [ana]`.")
    for name in listed:
        if not isinstance(name, str) or name not in analysts:
            unknown("HB407", f"returning: {name}", str(name), "analyst", analysts)
    return tuple(sorted(set(listed)))


def _show(top: Mapping[str, object]) -> dict[str, Show]:
    """Read what analysts are told of others' spending, where an owner chose something else than `rounded`."""
    chosen: dict[str, Show] = {}
    for name, value in mapping(top["datasets"], "datasets").items():
        budget = mapping(mapping(value, name).get("budget", {}), name)
        how = budget.get("show", "rounded")
        if how not in ("rounded", "exact", "hidden"):
            path = f"datasets.{name}.budget.show"
            refuse("HB403", path, f"is {how!r}", "Write `rounded`, `exact` or `hidden`.")
        if how != "rounded":
            chosen[name] = "exact" if how == "exact" else "hidden"
    return chosen


def _dataset(name: str, value: object) -> tuple[Cap, ...] | None:
    path = f"datasets.{name}"
    entry = mapping(value, path)
    known(entry, path, KEYS["datasets.*"])
    is_public = entry.get("public", False)
    if not isinstance(is_public, bool):
        refuse("HB403", f"{path}.public", "is neither true nor false", "Write true or false.")
    if is_public:
        if "budget" in entry:
            refuse("HB406", f"{path}.budget", "is a budget on public data", "Leave out `budget` or `public`.")
        return None
    if "budget" not in entry:
        refuse("HB402", f"{path}.budget", "is missing", "Write `budget: {epsilon: …}`, or `public: true`.")
    path += ".budget"
    terms = mapping(entry["budget"], path)
    known(terms, path, KEYS["datasets.*.budget"])
    lifetime = _budget(terms, path, Fraction(0))
    caps = [Cap("dataset", name, name, lifetime)]
    if "per_query" in terms:
        most = _number(terms["per_query"], f"{path}.per_query", numbers.epsilon)
        if most > lifetime.epsilon:
            _above(f"{path}.per_query", most, f"{path}.epsilon", lifetime.epsilon)
        caps.insert(0, Cap("query", "one", name, Budget(most, lifetime.delta)))
    if "renewal" in terms:
        path += ".renewal"
        renewal = mapping(terms["renewal"], path)
        known(renewal, path, KEYS["datasets.*.budget.renewal"])
        per = renewal.get("per")
        if per not in ("day", "month"):
            refuse("HB403", f"{path}.per", f"is {per!r}", "Write `day` or `month`.")
        again = _budget(renewal, path, lifetime.delta)
        _within(again, path, lifetime, f"datasets.{name}.budget")
        caps.append(Cap("dataset", name, name, again, per))
    return tuple(caps)


def _budget(terms: Mapping[str, object], path: str, inherited: Fraction) -> Budget:
    if "epsilon" not in terms:
        refuse("HB402", f"{path}.epsilon", "is missing", "Write how much may be spent, such as `epsilon: 1`.")
    epsilon = _number(terms["epsilon"], f"{path}.epsilon", numbers.epsilon)
    return Budget(epsilon, _number(terms["delta"], f"{path}.delta", numbers.delta) if "delta" in terms else inherited)


def _caps(
    value: object, path: str, scope: Scope, name: str, datasets: Mapping[str, tuple[Cap, ...]], public: set[str]
) -> dict[str, Cap]:
    caps = {}
    for dataset, terms in mapping(value, path).items():
        if dataset in public:
            refuse(
                "HB406", f"{path}.{dataset}", "is a cap on public data", "Leave it out: public data needs no budget."
            )
        if dataset not in datasets:
            unknown("HB405", f"{path}.{dataset}", dataset, "dataset", datasets)
        known(mapping(terms, f"{path}.{dataset}"), f"{path}.{dataset}", KEYS["cap"])
        (lifetime,) = [cap.budget for cap in datasets[dataset] if cap.scope == "dataset" and cap.per is None]
        budget = _budget(mapping(terms, f"{path}.{dataset}"), f"{path}.{dataset}", lifetime.delta)
        _within(budget, f"{path}.{dataset}", lifetime, f"datasets.{dataset}.budget")
        caps[dataset] = Cap(scope, name, dataset, budget)
    return caps


def _members(group: Mapping[str, object], path: str, analysts: Mapping[str, object]) -> tuple[str, ...]:
    members = group.get("members")
    if not isinstance(members, list) or not members:
        refuse("HB407", f"{path}.members", "names nobody", "List the analysts: `members: [ana, ben]`.")
    for place, member in enumerate(members):
        if not isinstance(member, str) or not _NAME.fullmatch(member):
            refuse("HB408", f"{path}.members[{place}]", f"is {member!r}, which is not a name", _NAMES)
        if members.count(member) > 1:
            refuse("HB407", f"{path}.members", f"names {member} twice", "Name everybody once.")
        # a slip here would leave somebody outside the group's cap, so a name that looks like one is not let through
        near = [] if member in analysts else get_close_matches(member, analysts, 1, 0.75)
        if near:
            refuse(
                "HB407",
                f"{path}.members[{place}]",
                f"is {member!r}, and the analysts have {near[0]!r}",
                f"Write {near[0]!r}; or, if {member!r} is somebody else, add `{member}: {{}}` under analysts.",
            )
    return tuple(members)


def _contradictions(
    analysts: Mapping[str, Mapping[str, Cap]], groups: Mapping[str, tuple[tuple[str, ...], Mapping[str, Cap]]]
) -> None:
    for group, (members, caps) in groups.items():
        for member in members:
            for dataset in caps.keys() & analysts[member].keys():
                own, shared = analysts[member][dataset].budget.epsilon, caps[dataset].budget.epsilon
                if own > shared:  # δ is not compared: where it was inherited, nobody wrote it down
                    _above(f"analysts.{member}.{dataset}.epsilon", own, f"groups.{group}.{dataset}.epsilon", shared)


def _within(inner: Budget, path: str, outer: Budget, above: str) -> None:
    """A cap that another one makes unreachable is a slip in one of the two."""
    if inner.epsilon > outer.epsilon:
        _above(f"{path}.epsilon", inner.epsilon, f"{above}.epsilon", outer.epsilon)
    if inner.delta > outer.delta:
        _above(f"{path}.delta", inner.delta, f"{above}.delta", outer.delta)


def _above(path: str, value: Fraction, above: str, limit: Fraction) -> NoReturn:
    why = f"is {numbers.brief(value)}, above {above}, which is {numbers.brief(limit)}, and could never be reached"
    refuse("HB406", path, why, "Lower the one or raise the other.")


def mapping(value: object, path: str) -> dict[str, object]:
    """Accept a mapping whose keys are text."""
    if not isinstance(value, dict):
        refuse("HB403", path or "the file", "is not a list of `name: value`", "See the example in the README.")
    for key in value:
        if not isinstance(key, str):
            refuse(
                "HB408", f"{path}.{key}".lstrip("."), f"has the name {key!r}, which is not text", "Put it in quotes."
            )
    return value


def is_name(value: object) -> bool:
    """Say whether this can be a name in hubbub.yaml."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def named(value: object, path: str) -> dict[str, object]:
    """Accept a mapping whose keys are names."""
    if value is None:
        refuse("HB402", path, "is missing or empty", f"Add something under `{path}:`.")
    entries = mapping(value, path)
    for name in entries:
        if not _NAME.fullmatch(name):
            refuse("HB408", f"{path}.{name!r}", "is not a name", _NAMES)
    return entries


def known(entries: Mapping[str, object], path: str, keys: frozenset[str]) -> None:
    """Refuse a key that is not one of these."""
    for key in entries:
        if key not in keys:
            unknown("HB401", f"{path}.{key}".lstrip("."), key, "key", keys)


def unknown(code: str, path: str, name: str, what: str, names: Collection[str]) -> NoReturn:
    """Refuse a name that nothing has, with the nearest that exists."""
    near = get_close_matches(name, names, 1)
    hint = f"Did you mean {near[0]!r}?" if near else f"Known here: {', '.join(sorted(names)) or 'none'}."
    refuse(code, path, f"is not a known {what}", hint)


def _number(value: object, path: str, accept: Callable[..., Fraction]) -> Fraction:
    try:
        return accept(value, path)
    except ParameterError as error:
        remedy = error.remedy
        if value == 0 and not isinstance(value, bool):
            remedy = "Leave it out: without a δ there is none." if path.endswith("delta") else _CLOSED
        raise ConfigError("HB404", error.message, remedy) from error


def refuse(code: str, path: str, why: str, remedy: str) -> NoReturn:
    """Refuse what stands at that place in the file."""
    raise ConfigError(code, f"{path} {why}.", remedy)
