"""The policy: the caps that apply to a charge, and the form in which the ledger records them.

A charge must fit under every cap that applies: those of a single query, of the analyst, of the analyst's groups, of the
dataset, and of the calendar day or month if the budget renews. An analyst can query a dataset only with a cap on it,
personal or of a group. `hubbub.config.policy` reads a policy from hubbub.yaml.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from fractions import Fraction
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, NamedTuple, NoReturn, get_args

from hubbub.accounting.chain import canonical
from hubbub.accounting.filters import Budget
from hubbub.answers.budget import CapDisplay, CapPeriod, CapScope
from hubbub.core import numbers
from hubbub.errors import ParameterError

DAY = 86_400_000_000  # in microseconds

_NAME = re.compile(r"[\w.@+-]{1,100}")  # no slash, so that the labels of different caps differ


def is_name(value: object) -> bool:
    """Say whether a value is a valid name of a dataset, analyst, group or entity."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


@dataclass(frozen=True, slots=True)
class Cap:
    """One limit on charges; `label` names its total in the ledger."""

    scope: CapScope
    name: str
    dataset: str
    budget: Budget
    per: CapPeriod | None = None
    label: str = field(init=False)

    def __post_init__(self) -> None:
        parts = [self.scope, self.name, self.dataset] if self.scope != "dataset" else [self.scope, self.dataset]
        object.__setattr__(self, "label", "/".join(parts if self.per is None else [*parts, self.per]))

    def at(self, time: int) -> str:
        """Name the total for a charge at this time: a renewed cap has one per calendar period (UTC)."""
        return self.label if self.per is None else f"{self.label}/{period(self.per, time // DAY)}"


@lru_cache(maxsize=1024)
def period(per: CapPeriod, day: int) -> str:
    """Name the calendar period of a day counted from 1970.

    >>> period("month", 0), period("day", 59)
    ('1970-01', '1970-03-01')
    """
    date = datetime.fromtimestamp(day * 86_400, UTC).date().isoformat()
    return date if per == "day" else date[:7]


def dataset_of_total(label: str) -> str | None:
    """Give the dataset whose lifetime total has this label, if it is one.

    >>> labels = ["dataset/visits", "dataset/visits/day/2026-01-31", "analyst/ana/visits"]
    >>> [dataset_of_total(label) for label in labels]
    ['visits', None, None]
    """
    scope, _, name = label.partition("/")
    return name if scope == "dataset" and "/" not in name else None


@dataclass(frozen=True)
class Policy:
    """All caps.

    declarations   the declaration of each dataset in hubbub.yaml, as JSON: see `declarations`
    returning      analysts who were removed and have returned
    show           how analysts see shared budgets of a dataset, if not `rounded`
    """

    datasets: Mapping[str, tuple[Cap, ...]]
    analysts: Mapping[str, Mapping[str, Cap]]
    groups: Mapping[str, tuple[tuple[str, ...], Mapping[str, Cap]]]
    declarations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    returning: tuple[str, ...] = ()
    show: Mapping[str, CapDisplay] = field(default_factory=dict)

    @cached_property
    def text(self) -> str:
        """The policy in canonical form, as the ledger records it."""
        datasets: dict[str, object] = {}
        for name, caps in self.datasets.items():
            budget: dict[str, object] = {}
            for cap in caps:
                if cap.scope == "query":
                    budget["per_query"] = str(cap.budget.epsilon)
                elif cap.per is not None:
                    budget["renewal"] = {"per": cap.per} | _form(cap.budget)
                else:
                    budget |= _form(cap.budget)
            if name in self.show:
                budget["show"] = self.show[name]
            datasets[name] = {"budget": budget}
        # keys that older versions did not have are omitted if empty, so that old policies keep their hashes
        more: dict[str, object] = {"declarations": self.declarations, "returning": sorted(self.returning)}
        return canonical(
            {name: value for name, value in more.items() if value}
            | {
                "version": 1,
                "datasets": datasets,
                "analysts": {a: {d: _form(cap.budget) for d, cap in caps.items()} for a, caps in self.analysts.items()},
                "groups": {
                    group: {"members": sorted(members)} | {d: _form(cap.budget) for d, cap in caps.items()}
                    for group, (members, caps) in self.groups.items()
                },
            }
        )

    @staticmethod
    def from_record(record: Mapping[str, Any]) -> "Policy":
        """Read the canonical form back, and raise an error for a policy that hubbub.yaml cannot contain.

        Whoever reads an untrusted record compares `text` with it afterwards, which finds unknown keys.
        """
        declarations = record.get("declarations", {})
        _require(_is_mapping_of_mappings(declarations), "has invalid declarations")
        for names in (record["datasets"], record["analysts"], record["groups"], declarations):
            _require(all(is_name(name) for name in names), "has an invalid name")
        # public datasets have no budget, only a declaration
        public = any(declaration.get("public") is True for declaration in declarations.values())
        _require(record["datasets"] or public, "has no dataset")
        datasets = {name: _dataset_caps(name, entry["budget"]) for name, entry in record["datasets"].items()}
        show: dict[str, CapDisplay] = {}
        for name, entry in record["datasets"].items():
            if "show" in entry["budget"]:
                show[name] = entry["budget"]["show"]
                _require(show[name] in get_args(CapDisplay) and show[name] != "rounded", "has an invalid `show`")

        def caps_of(scope: CapScope, name: str, entries: Mapping[str, Any]) -> dict[str, Cap]:
            deltas = {dataset: _lifetime(datasets[dataset]).budget.delta for dataset in entries}
            return {d: Cap(scope, name, d, _budget(terms, deltas[d])) for d, terms in entries.items()}

        analysts = {name: caps_of("analyst", name, entries) for name, entries in record["analysts"].items()}
        groups: dict[str, tuple[tuple[str, ...], Mapping[str, Cap]]] = {}
        for name, entry in record["groups"].items():
            entries = {dataset: terms for dataset, terms in entry.items() if dataset != "members"}
            _require(entries, "has a group without caps")
            _require(_lists_some(entry["members"], analysts), "has a group with invalid members")
            groups[name] = (tuple(entry["members"]), caps_of("group", name, entries))
        returning = record.get("returning", [])
        _require(returning == [] or _lists_some(returning, analysts), "has invalid returning analysts")
        policy = Policy(datasets, analysts, groups, declarations, tuple(returning), show)
        for excess in unreachable_caps(policy):
            raise ValueError(f"The recorded policy has {excess.path} above {excess.limit_path}.")
        return policy

    @cached_property
    def hash(self) -> bytes:
        """SHA-256 of the canonical form."""
        return sha256(self.text.encode()).digest()

    @cached_property
    def _caps(self) -> dict[tuple[str, str], tuple[Cap, ...]]:
        return {}

    def caps(self, analyst: str, dataset: str) -> tuple[Cap, ...]:
        """Give every cap that applies to a charge, the narrowest first.

        An analyst without a personal cap gets one equal to that of the dataset, so that the ledger always knows what
        each analyst spent.
        """
        known = self._caps.get((analyst, dataset))
        if known is None:
            known = self._caps[analyst, dataset] = self._derive(analyst, dataset)
        return known

    def _derive(self, analyst: str, dataset: str) -> tuple[Cap, ...]:
        if dataset not in self.datasets:
            _refuse_charge("HB120", "dataset", dataset, self.datasets)
        if analyst not in self.analysts:
            _refuse_charge("HB121", "analyst", analyst, self.analysts)
        shared = [caps[dataset] for members, caps in self.groups.values() if analyst in members and dataset in caps]
        own = self.analysts[analyst].get(dataset)
        if own is None and not shared:
            raise ParameterError(
                "HB122",
                f"{analyst} has no budget on {dataset}. Nothing was run or charged.",
                f"Ask the data owner to add one to hubbub.yaml, under analysts.{analyst}.{dataset}.",
            )
        of_dataset = self.datasets[dataset]
        if own is None:
            own = Cap("analyst", analyst, dataset, _lifetime(of_dataset).budget)
        return (
            *[cap for cap in of_dataset if cap.scope == "query"],
            own,
            *shared,
            *[cap for cap in of_dataset if cap.scope == "dataset"],
        )

    def every_cap(self) -> tuple[Cap, ...]:
        """Give each cap that has a total, once."""
        caps_by_label: dict[str, Cap] = {}
        for dataset in self.datasets:
            for analyst in self.analysts:
                shared = any(analyst in members and dataset in caps for members, caps in self.groups.values())
                if shared or dataset in self.analysts[analyst]:
                    caps_by_label |= {cap.label: cap for cap in self.caps(analyst, dataset) if cap.scope != "query"}
            caps_by_label |= {cap.label: cap for cap in self.datasets[dataset] if cap.scope != "query"}
            caps_by_label |= {caps[dataset].label: caps[dataset] for _, caps in self.groups.values() if dataset in caps}
        return tuple(caps_by_label.values())


class UnreachableCap(NamedTuple):
    """A value of a cap above that of another cap. The paths are those in hubbub.yaml."""

    path: str
    value: Fraction
    limit_path: str
    limit: Fraction


def unreachable_caps(policy: Policy) -> Iterator[UnreachableCap]:
    """Find caps that can never be reached because another cap is smaller: one of the two is a mistake."""
    for caps in (
        *policy.datasets.values(),
        *[own.values() for own in policy.analysts.values()],
        *[shared.values() for _, shared in policy.groups.values()],
    ):
        for cap in caps:
            lifetime = _lifetime(policy.datasets[cap.dataset])
            if cap.budget.epsilon > lifetime.budget.epsilon:
                yield _epsilon_above(cap, lifetime)
            if cap.budget.delta > lifetime.budget.delta:
                paths = f"{_path(cap)}.delta", f"{_path(lifetime)}.delta"
                yield UnreachableCap(paths[0], cap.budget.delta, paths[1], lifetime.budget.delta)
    for members, group_caps in policy.groups.values():
        for member in members:
            for dataset, shared in group_caps.items():
                own = policy.analysts[member].get(dataset, shared)
                if own.budget.epsilon > shared.budget.epsilon:  # δ is not compared: it may be inherited
                    yield _epsilon_above(own, shared)


def _epsilon_above(cap: Cap, limit: Cap) -> UnreachableCap:
    path = _path(cap) if cap.scope == "query" else f"{_path(cap)}.epsilon"
    return UnreachableCap(path, cap.budget.epsilon, f"{_path(limit)}.epsilon", limit.budget.epsilon)


def _path(cap: Cap) -> str:
    """Give the place of a cap in hubbub.yaml."""
    if cap.scope in ("analyst", "group"):
        return f"{cap.scope}s.{cap.name}.{cap.dataset}"
    path = f"datasets.{cap.dataset}.budget"
    if cap.scope == "query":
        return f"{path}.per_query"
    return path if cap.per is None else f"{path}.renewal"


def _dataset_caps(name: str, terms: Mapping[str, Any]) -> tuple[Cap, ...]:
    """Read the recorded caps of a dataset."""
    lifetime = _budget(terms, Fraction(0))
    caps = [Cap("dataset", name, name, lifetime)]
    if "per_query" in terms:
        caps.insert(0, Cap("query", "one", name, Budget(numbers.epsilon(terms["per_query"]), lifetime.delta)))
    if "renewal" in terms:
        renewal = terms["renewal"]
        _require(renewal["per"] in get_args(CapPeriod), "has an unknown period of renewal")
        caps.append(Cap("dataset", name, name, _budget(renewal, lifetime.delta), renewal["per"]))
    return tuple(caps)


def _is_mapping_of_mappings(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(entry, Mapping) for entry in value.values())


def _lists_some(value: object, analysts: Mapping[str, object]) -> bool:
    """Say whether a value is a list of known analysts, each once, and at least one."""
    return isinstance(value, list) and 0 < len(value) == len(set(value)) and all(name in analysts for name in value)


def _require(valid: object, otherwise: str) -> None:
    if not valid:
        raise ValueError(f"The recorded policy {otherwise}.")


def _lifetime(caps: Sequence[Cap]) -> Cap:
    """Give the cap on the whole lifetime of a dataset."""
    (lifetime,) = [cap for cap in caps if cap.scope == "dataset" and cap.per is None]
    return lifetime


def _budget(terms: Mapping[str, Any], inherited: Fraction) -> Budget:
    delta = numbers.delta(terms["delta"]) if "delta" in terms else inherited
    return Budget(numbers.epsilon(terms["epsilon"]), delta)


def _form(budget: Budget) -> dict[str, object]:
    form: dict[str, object] = {"epsilon": str(budget.epsilon)}
    return form | ({"delta": str(budget.delta)} if budget.delta else {})


def _refuse_charge(code: str, what: str, name: str, known: Mapping[str, object]) -> NoReturn:
    near = get_close_matches(name, known, 1)
    raise ParameterError(
        code,
        f"Unknown {what} {name!r}. Nothing was run or charged.",
        f"Did you mean {near[0]!r}?" if near else f"Use one of the {what}s in hubbub.yaml.",
    )
