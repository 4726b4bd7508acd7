"""The policy: the caps that apply to a charge, and the form in which the ledger records them.

A charge must fit under every cap that applies: those of a single query, of the analyst, of the analyst's groups, of the
dataset, and of the calendar day or month if the budget renews. An analyst can query a dataset only with a cap on it,
personal or of a group. `hubbub.config.policy` reads a policy from hubbub.yaml.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from difflib import get_close_matches
from fractions import Fraction
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, NamedTuple, NoReturn, get_args

from hubbub.accounting.chain import canonical
from hubbub.accounting.contradictions import check_recorded
from hubbub.accounting.cost import PrivacyCost
from hubbub.accounting.filters import Budget
from hubbub.accounting.review_rule import ReviewRule
from hubbub.answers.budget import CapDisplay, CapPeriod, CapScope
from hubbub.core import numbers
from hubbub.core.blocks import Blocks, BlockSet, block_name
from hubbub.errors import ParameterError

DAY = 86_400_000_000  # in microseconds

#: How caps split their δ over filters now; recorded with each policy as `filters`.
RULE = 2

#: The keys of a project besides the datasets of its caps.
PROJECT_KEYS = ("group", "members", "until")

#: The δ at which a Gaussian charge is expressed if its dataset has no δ.
_COMMON_DELTA = Fraction(1, 10**9)

_NAME = re.compile(r"[\w.@+-]{1,100}")  # no slash, so that the labels of different caps differ


def is_name(value: object) -> bool:
    """Say whether a value is a valid name of a dataset, analyst, group or entity."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


@dataclass(frozen=True, slots=True)
class FairShares:
    """That analysts who share a cap have equal shares of it: see `fairness`.

    until  the first day on which they may use everything that is left
    needs  the analysts who need at most this part of the cap, sorted by name
    """

    until: date | None = None
    needs: tuple[tuple[str, Fraction], ...] = ()

    def form(self) -> dict[str, object]:
        """The canonical form in a recorded policy."""
        needs = {name: str(part) for name, part in self.needs}
        return ({"until": self.until.isoformat()} if self.until else {}) | ({"needs": needs} if needs else {})


class ProjectCaps(NamedTuple):
    """A project of some members of a group: while it runs, they share caps within those of the group.

    until  the first day on which it has ended
    """

    group: str
    members: tuple[str, ...]
    until: date
    caps: Mapping[str, "Cap"]


@dataclass(frozen=True, slots=True)
class Cap:
    """One limit on charges; `label` names its total in the ledger.

    block  None: the limit is on all charges; "": it holds in each block on its own; otherwise the block it is about
    group  of a project, its group
    until  of a project, the first day on which the limit does not hold any more; charges are added to its total still
    fair   of a shared cap, how it is divided, if it is
    """

    scope: CapScope
    name: str
    dataset: str
    budget: Budget
    per: CapPeriod | None = None
    block: str | None = None
    group: str = ""
    until: date | None = None
    fair: FairShares | None = None
    label: str = field(init=False)

    def __post_init__(self) -> None:
        parts = [self.scope, self.name, self.dataset] if self.scope != "dataset" else [self.scope, self.dataset]
        if self.scope == "project":
            parts.insert(1, self.group)
        parts += [] if self.block is None else ["block", self.block]
        object.__setattr__(self, "label", "/".join(parts if self.per is None else [*parts, self.per]))

    @property
    def lasting(self) -> bool:
        """Whether this is the cap on everything that is ever charged to a dataset."""
        return self.scope == "dataset" and self.per is None and self.block is None

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
    """Give the dataset whose lifetime total has this label, or the total of one of its blocks, if it is one.

    >>> labels = ["dataset/visits", "dataset/visits/day/2026-01-31", "analyst/ana/visits", "dataset/visits/block/2026"]
    >>> [dataset_of_total(label) for label in labels]
    ['visits', None, None, 'visits']
    """
    scope, _, rest = label.partition("/")
    name, _, more = rest.partition("/")
    return name if scope == "dataset" and (not more or more.startswith("block/")) else None


@dataclass(frozen=True)
class Policy:
    """All caps.

    declarations   the declaration of each dataset in hubbub.yaml, as JSON: see `declarations`
    returning      analysts who were removed and have returned
    show           how analysts see shared budgets of a dataset, if not `rounded`
    rule           how caps split their δ: 1 in policies from before 19 November 2026, see `filters`
    projects       by name, see `fairness`
    reviews        which answers of a dataset are reviewed before they are shown, see `reviews`
    """

    datasets: Mapping[str, tuple[Cap, ...]]
    analysts: Mapping[str, Mapping[str, Cap]]
    groups: Mapping[str, tuple[tuple[str, ...], Mapping[str, Cap]]]
    declarations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    returning: tuple[str, ...] = ()
    show: Mapping[str, CapDisplay] = field(default_factory=dict)
    rule: int = RULE
    projects: Mapping[str, ProjectCaps] = field(default_factory=dict)
    reviews: Mapping[str, ReviewRule] = field(default_factory=dict)

    def cost(self, cost: PrivacyCost) -> PrivacyCost:
        """Give what a charge under this policy adds to totals."""
        return cost.by_first_rule if self.rule == 1 else cost

    @cached_property
    def text(self) -> str:
        """The policy in canonical form, as the ledger records it."""
        datasets: dict[str, object] = {}
        for name, caps in self.datasets.items():
            budget: dict[str, object] = {}
            blocks: dict[str, object] = {}
            for cap in caps:
                if cap.scope == "query":
                    budget["per_query"] = str(cap.budget.epsilon)
                elif cap.block is not None:
                    blocks["blocks"] = _form(cap)
                elif cap.per is not None:
                    budget["renewal"] = {"per": cap.per} | _form(cap)
                else:
                    budget |= _form(cap)
            if name in self.show:
                budget["show"] = self.show[name]
            datasets[name] = {"budget": budget} | blocks
        # keys that older versions did not have are omitted if empty, so that old policies keep their hashes
        more: dict[str, object] = {"declarations": self.declarations, "returning": sorted(self.returning)}
        more["filters"] = self.rule if self.rule > 1 else None
        more["reviews"] = {name: rule.form() for name, rule in self.reviews.items()}
        more["projects"] = {
            name: {"group": each.group, "members": sorted(each.members), "until": each.until.isoformat()}
            | {d: _form(cap) for d, cap in each.caps.items()}
            for name, each in self.projects.items()
        }
        return canonical(
            {name: value for name, value in more.items() if value}
            | {
                "version": 1,
                "datasets": datasets,
                "analysts": {a: {d: _form(cap) for d, cap in caps.items()} for a, caps in self.analysts.items()},
                "groups": {
                    group: {"members": sorted(members)} | {d: _form(cap) for d, cap in caps.items()}
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
        datasets = {name: _dataset_caps(name, entry) for name, entry in record["datasets"].items()}
        for name, caps in datasets.items():
            declared = "blocks" in declarations.get(name, {})
            _require(declared or not has_blocks(caps), "has caps on blocks that are not declared")
            _require(has_blocks(caps) or not declared, "has blocks without caps")
            if declared:
                lasting = Blocks.declared(declarations[name]["blocks"]).lasting
                _require(lasting == (lifetime_of(caps) is not None), "has a lasting cap that is not declared")
        show: dict[str, CapDisplay] = {}
        for name, entry in record["datasets"].items():
            if "show" in entry["budget"]:
                show[name] = entry["budget"]["show"]
                _require(show[name] in get_args(CapDisplay) and show[name] != "rounded", "has an invalid `show`")

        def caps_of(scope: CapScope, name: str, entries: Mapping[str, Any]) -> dict[str, Cap]:
            bases = {dataset: basis(datasets[dataset]) for dataset in entries}
            return {
                d: Cap(scope, name, d, _budget(terms, bases[d].budget.delta), block=bases[d].block, fair=_fair(terms))
                for d, terms in entries.items()
            }

        analysts = {name: caps_of("analyst", name, entries) for name, entries in record["analysts"].items()}
        groups: dict[str, tuple[tuple[str, ...], Mapping[str, Cap]]] = {}
        for name, entry in record["groups"].items():
            entries = {dataset: terms for dataset, terms in entry.items() if dataset != "members"}
            _require(entries, "has a group without caps")
            _require(_lists_some(entry["members"], analysts), "has a group with invalid members")
            groups[name] = (tuple(entry["members"]), caps_of("group", name, entries))
        returning = record.get("returning", [])
        _require(returning == [] or _lists_some(returning, analysts), "has invalid returning analysts")
        rule = record.get("filters", 1)
        _require(rule in (1, RULE), "has unknown filters")
        projects = _projects(record.get("projects", {}), analysts, caps_of)
        reviews = {name: ReviewRule.from_record(form) for name, form in record.get("reviews", {}).items()}
        _require(reviews.keys() <= datasets.keys(), "reviews an unknown dataset")
        policy = Policy(datasets, analysts, groups, declarations, tuple(returning), show, rule, projects, reviews)
        check_recorded(policy)
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
        of_projects = [p.caps[dataset] for p in self.projects.values() if analyst in p.members and dataset in p.caps]
        if own is None:
            whole = basis(of_dataset)
            own = Cap("analyst", analyst, dataset, whole.budget, block=whole.block)
        return (
            *[cap for cap in of_dataset if cap.scope == "query"],
            own,
            *of_projects,
            *shared,
            *[cap for cap in of_dataset if cap.scope == "dataset"],
        )

    def blocks(self, dataset: str) -> Blocks | None:
        """Give the declared blocks of a dataset, if it has some."""
        declared = self.declarations.get(dataset, {}).get("blocks")
        return None if declared is None else Blocks.declared(declared)

    def charged(self, analyst: str, dataset: str, blocks: BlockSet | None) -> tuple[Cap, ...]:
        """Give every cap that a charge counts against: those on blocks once for each block that the charge is for.

        Theorem (Blocks in parallel). Let a privacy unit have rows in at most one block, b. Let each charge name a set
        of blocks, and let its answer be a function of the rows in these blocks and of noise alone. Then everything that
        is ever answered is, for this unit, within the caps on block b, however each query and its blocks were chosen.
        Proof    Fix two neighbors: they differ in rows of this unit, so in rows of b alone. Go along any transcript.
                 The answer of a charge that does not name b has the same distribution on both, given what was answered
                 before, so its loss is 0 whatever it cost. The answer of a charge that names b has a loss within the
                 cost of its event, and this cost was added to the total of each cap on b before the answer was drawn.
                 Which charges name b, and which are refused by this or any other cap, follows from earlier answers,
                 and filters hold for every adaptive choice (see `filters`). So the losses of the whole transcript are
                 those of a sequence that the filter of each cap on b admitted.
        Theorem (Units in several blocks). Where a unit has rows in k blocks, everything that is answered about any of
        them is within k times the caps on blocks, and within the lasting cap of the dataset, to which each charge is
        added once, whatever its blocks.
        Proof    Each charge with a loss for the unit names one of the k blocks, so its cost is in one of k totals. The
                 lasting cap is an ordinary one: every charge is added to it.
        Assumes  `read` of a table, by which its scans are restricted, is the set that is charged: see `sql.blocks`.
        Charges  nothing by itself.
        Tested   tests/accounting/test_blocks.py::test_the_worst_adaptive_analyst_stays_within_the_cap_of_each_block
                 tests/accounting/test_blocks.py::test_a_charge_that_leaves_out_a_block_is_caught
        """
        declared, caps = self.blocks(dataset), self.caps(analyst, dataset)
        if (declared is None) != (blocks is None) or (
            declared is not None and blocks is not None and declared.by != blocks.by
        ):
            raise ParameterError(
                "HB206",
                f"The charge does not name the blocks of {dataset} as hubbub.yaml declares them. Nothing was charged.",
                "Run the query again: the configuration was changed while it was planned.",
            )
        if declared is None or blocks is None:
            return caps
        outside = [b for b in blocks if b < declared.first or (declared.last is not None and b > declared.last)]
        if outside or not len(blocks):
            named = block_name(blocks.by, outside[0]) if outside else "no block"
            raise ParameterError(
                "HB207",
                f"The charge names {named}, which is not among the blocks of {dataset}. Nothing was charged.",
                "Run the query again: the configuration was changed while it was planned.",
            )
        expanded: list[Cap] = []
        for cap in caps:
            expanded += [cap] if cap.block is None else [replace(cap, block=name) for name in blocks.names()]
        return tuple(expanded)

    def delta_of(self, dataset: str) -> Fraction:
        """Give the δ of a dataset, or a common one if it has none: ε of Gaussian charges is stated at it."""
        caps = self.datasets.get(dataset, ())
        return next((cap.budget.delta for cap in caps if cap.scope == "dataset" and cap.budget.delta), _COMMON_DELTA)

    def in_blocks(self, cap: Cap, today: date) -> list[Cap]:
        """Give a cap, or that on each block that existed until today if it holds in each of them."""
        declared = self.blocks(cap.dataset)
        if cap.block != "" or declared is None:
            return [cap]
        return [replace(cap, block=name) for name in declared.existing(today).names()]

    def sharers(self, cap: Cap) -> tuple[str, ...]:
        """Give the analysts who share the cap of a group, or of a dataset."""
        if cap.scope == "group":
            return self.groups[cap.name][0]
        grouped = {name for members, caps in self.groups.values() if cap.dataset in caps for name in members}
        return tuple(name for name, own in self.analysts.items() if cap.dataset in own or name in grouped)

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


def _dataset_caps(name: str, entry: Mapping[str, Any]) -> tuple[Cap, ...]:
    """Read the recorded caps of a dataset."""
    terms, blocks = entry["budget"], entry.get("blocks")
    caps: list[Cap] = []
    if blocks is None or "epsilon" in terms:
        caps.append(Cap("dataset", name, name, _budget(terms, Fraction(0)), fair=_fair(terms)))
    if blocks is not None:
        inherited = caps[0].budget.delta if caps else Fraction(0)
        caps.append(Cap("dataset", name, name, _budget(blocks, inherited), block="", fair=_fair(blocks)))
    lifetime = caps[0].budget
    if "per_query" in terms:
        caps.insert(0, Cap("query", "one", name, Budget(numbers.epsilon(terms["per_query"]), basis(caps).budget.delta)))
    if "renewal" in terms:
        _require(lifetime_of(caps) is not None, "renews a budget that it does not have")
        renewal = terms["renewal"]
        _require(renewal["per"] in get_args(CapPeriod), "has an unknown period of renewal")
        caps.append(Cap("dataset", name, name, _budget(renewal, lifetime.delta), renewal["per"]))
    return tuple(caps)


def _projects(
    record: Mapping[str, Any],
    analysts: Mapping[str, object],
    caps_of: Callable[[CapScope, str, Mapping[str, Any]], dict[str, Cap]],
) -> dict[str, ProjectCaps]:
    """Read the recorded projects."""
    projects: dict[str, ProjectCaps] = {}
    for name, entry in record.items():
        _require(is_name(name), "has an invalid name")
        group, until = entry["group"], date.fromisoformat(entry["until"])
        entries = {dataset: terms for dataset, terms in entry.items() if dataset not in PROJECT_KEYS}
        _require(_lists_some(entry["members"], analysts), "has a project with invalid members")
        caps = {d: replace(cap, group=group, until=until) for d, cap in caps_of("project", name, entries).items()}
        projects[name] = ProjectCaps(group, tuple(entry["members"]), until, caps)
    return projects


def _is_mapping_of_mappings(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(entry, Mapping) for entry in value.values())


def _lists_some(value: object, analysts: Mapping[str, object]) -> bool:
    """Say whether a value is a list of known analysts, each once, and at least one."""
    return isinstance(value, list) and 0 < len(value) == len(set(value)) and all(name in analysts for name in value)


def _require(valid: object, otherwise: str) -> None:
    if not valid:
        raise ValueError(f"The recorded policy {otherwise}.")


def has_blocks(caps: Iterable[Cap]) -> bool:
    """Say whether some of these caps hold in each block on its own."""
    return any(cap.block is not None for cap in caps)


def lifetime_of(caps: Iterable[Cap]) -> Cap | None:
    """Give the cap on everything that is ever charged to a dataset; a dataset with blocks may have none."""
    return next((cap for cap in caps if cap.lasting), None)


def basis(caps: Sequence[Cap]) -> Cap:
    """Give the cap of a dataset to which those of analysts relate: that on each block, or else the lasting one."""
    of_block = next((cap for cap in caps if cap.scope == "dataset" and cap.block is not None), None)
    lifetime = of_block or lifetime_of(caps)
    if lifetime is None:
        raise TypeError("a dataset has a cap")
    return lifetime


def _budget(terms: Mapping[str, Any], inherited: Fraction) -> Budget:
    delta = numbers.delta(terms["delta"]) if "delta" in terms else inherited
    return Budget(numbers.epsilon(terms["epsilon"]), delta)


def _form(cap: Cap) -> dict[str, object]:
    form: dict[str, object] = {"epsilon": str(cap.budget.epsilon)}
    form |= {"delta": str(cap.budget.delta)} if cap.budget.delta else {}
    return form | ({} if cap.fair is None else {"fair": cap.fair.form()})


def _fair(terms: Mapping[str, Any]) -> FairShares | None:
    if "fair" not in terms:
        return None
    form = terms["fair"]
    until = date.fromisoformat(form["until"]) if "until" in form else None
    return FairShares(until, tuple(sorted((name, Fraction(part)) for name, part in form.get("needs", {}).items())))


def _refuse_charge(code: str, what: str, name: str, known: Mapping[str, object]) -> NoReturn:
    near = get_close_matches(name, known, 1)
    raise ParameterError(
        code,
        f"Unknown {what} {name!r}. Nothing was run or charged.",
        f"Did you mean {near[0]!r}?" if near else f"Use one of the {what}s in hubbub.yaml.",
    )
