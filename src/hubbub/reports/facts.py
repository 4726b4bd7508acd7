"""What the ledger and hubbub.yaml say about a deployment: the facts that its documents are made of.

Every fact is read or computed here, once. What only people know (purpose, legal basis, contact) is not here.

Tested in tests/reports/test_facts.py.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from importlib.metadata import version
from typing import Any

from hubbub.accounting.blocks import closed_by
from hubbub.accounting.chain import Entry
from hubbub.accounting.cost import ZERO, PrivacyCost, blocks_of_facts, cost_of_facts
from hubbub.accounting.disclosure import epsilon_under
from hubbub.accounting.filters import Budget
from hubbub.accounting.ledger import examine
from hubbub.accounting.policy import Cap, basis, dataset_of_total, lifetime_of
from hubbub.accounting.store import EntryFilter
from hubbub.accounting.verify import Verification, forfeited_costs
from hubbub.config import Config
from hubbub.config.blocks import promises
from hubbub.config.dataset import DatasetConfig
from hubbub.config.summary import caps, guarantee, hidden_fact, protected_unit
from hubbub.core.unit import Relation
from hubbub.curator.opening import anchor_of, store_of

#: Mechanisms by the name that the ledger stores, in words.
MECHANISMS: Mapping[str, str] = {
    "laplace": "discrete Laplace noise",
    "gaussian": "discrete Gaussian noise",
    "selection": "private selection (exponential mechanism and its kin)",
    "response": "randomized response",
    "flips": "randomized response on bits",
    "metric": "metric-space mechanism",
    "sparsevector": "sparse vector technique",
    "threshold": "partition selection by a noisy threshold",
    "weightedthreshold": "partition selection by weights",
    "smooth": "noise by smooth sensitivity",
    "proposal": "propose-test-release",
    "binomial": "binomial noise",
}
_PARTS = "together"


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """One private dataset: what is declared, and what its charges amount to.

    blocks          what its blocks promise, for each block and for all time; empty if it has none
    spent           what counts under `budget`: charges, and what was written off after a loss of the ledger
    spent_by_block  whether `budget` and `spent` are those of one block, the one that was charged most
    forfeits        how often something was written off
    """

    name: str
    unit: str
    hidden: str
    relation: Relation
    rows_are_units: bool
    owners: int
    bounds: tuple[str, ...]
    caps: tuple[tuple[str, Budget], ...]
    budget: Budget
    spent: PrivacyCost
    charges: int
    answered: int
    analysts: int
    failures: int
    forfeits: int
    first: datetime | None
    last: datetime | None
    mechanisms: tuple[tuple[str, int], ...]
    blocks: tuple[str, ...] = ()
    spent_by_block: bool = False

    @property
    def spent_epsilon(self) -> Fraction | None:
        """The spent ε as the budget counts it; None for Gaussian noise under a budget without δ."""
        return epsilon_under(self.budget, self.spent)

    @property
    def certainty(self) -> str:
        """How sure someone can become who starts out 50% sure, once the whole budget is spent."""
        return guarantee(self.budget)

    @property
    def selects_groups(self) -> bool:
        """Whether groups were selected privately, so that small ones are missing from answers."""
        return any("partition selection" in name for name, _ in self.mechanisms)


@dataclass(frozen=True, slots=True)
class Deployment:
    """All facts about one deployment at one moment."""

    made: datetime
    software: str
    config_hash: str
    verification: Verification
    policies: tuple[datetime, ...]
    datasets: tuple[DatasetFacts, ...]
    public: tuple[str, ...]
    engines: tuple[str, ...]
    audit: Mapping[str, Any] | None

    @property
    def head(self) -> str:
        """The hash of the newest entry of the ledger."""
        return self.verification.head.hash.hex()


def read(config: Config, *, audit: Mapping[str, Any] | None = None, until: datetime | None = None) -> Deployment:
    """Read the facts; `audit` is a verified report of `hubbub audit self`."""
    store = store_of(config, read_only=True)
    try:
        verification = examine(store, anchor_of(config))
        with store.snapshot() as snapshot:
            entries = [*snapshot.entries(EntryFilter(until=_microseconds(until)))]
    finally:
        store.close()
    private = [dataset for dataset in config.datasets.values() if not dataset.table.public]
    return Deployment(
        made=until or datetime.now(UTC),
        software=f"hubbub {version('hubbub')}",
        config_hash=config.hash,
        verification=verification,
        policies=tuple(moment(entry) for entry in entries if entry.kind == "policy"),
        datasets=tuple(_dataset(config, dataset, entries) for dataset in private),
        public=tuple(sorted(name for name, dataset in config.datasets.items() if dataset.table.public)),
        engines=tuple(sorted({dataset.place.engine.name for dataset in config.datasets.values()})),
        audit=audit,
    )


def moment(entry: Entry) -> datetime:
    """Return the time of an entry."""
    return datetime.fromtimestamp(entry.time / 1_000_000, UTC)


def _microseconds(time: datetime | None) -> int | None:
    return None if time is None else int(time.timestamp() * 1_000_000)


def _dataset(config: Config, dataset: DatasetConfig, entries: Sequence[Entry]) -> DatasetFacts:
    table = dataset.table
    mine = [entry for entry in entries if entry.dataset == table.name]
    charges = [entry for entry in mine if entry.kind == "charge"]
    counted = Counter(entry.facts for entry in charges)
    of_dataset = config.policy.datasets[table.name]
    cap = lifetime_of(of_dataset) or basis(of_dataset)
    writeoffs = _writeoffs(table.name, entries)
    budget, spent = cap.budget, _spent(charges, writeoffs, cap, _rules(entries))
    released = {entry.charge for entry in mine if entry.kind == "release"}
    return DatasetFacts(
        name=table.name,
        unit=protected_unit(dataset),
        hidden=hidden_fact(dataset),
        relation=table.relation,
        rows_are_units=table.unit is not None and table.unit.column is None,
        owners=len(table.owners),
        bounds=tuple(_bounds(dataset)),
        caps=tuple(caps(config.policy, table.name)),
        budget=budget,
        spent=spent,
        charges=len(charges),
        answered=sum(entry.sequence in released for entry in charges),
        analysts=len({entry.analyst for entry in charges}),
        failures=sum(entry.kind == "failure" for entry in mine),
        forfeits=len(writeoffs),
        first=moment(charges[0]) if charges else None,
        last=moment(charges[-1]) if charges else None,
        mechanisms=tuple(_mechanisms(counted).most_common()),
        blocks=promises(table),
        spent_by_block=cap.block is not None,
    )


def _rules(entries: Iterable[Entry]) -> dict[bytes, int]:
    """Return the rule of each recorded policy by which caps split their δ."""
    return {entry.config: json.loads(entry.facts).get("filters", 1) for entry in entries if entry.kind == "policy"}


def _writeoffs(name: str, entries: Iterable[Entry]) -> list[tuple[bytes, dict[str, PrivacyCost]]]:
    """Return what was written off of a dataset after losses of the ledger, by policy and total; no closed blocks."""
    found = []
    for entry in entries:
        facts = json.loads(entry.facts) if entry.kind == "forfeit" else {}
        if facts and not closed_by(facts):
            costs = {label: cost for label, cost in forfeited_costs(facts).items() if dataset_of_total(label) == name}
            found += [(entry.config, costs)] if costs else []
    return found


def _spent(
    charges: Iterable[Entry],
    writeoffs: Iterable[tuple[bytes, dict[str, PrivacyCost]]],
    cap: Cap,
    rules: Mapping[bytes, int],
) -> PrivacyCost:
    """Add up what counts under a cap, as the ledger does; of one that holds in each block, on the block with most."""
    totals: dict[str, PrivacyCost] = {}

    def add(label: str, config: bytes, cost: PrivacyCost) -> None:
        totals[label] = totals.get(label, ZERO) + (cost.by_first_rule if rules.get(config) == 1 else cost)

    for (config, text), times in sorted(Counter((entry.config, entry.facts) for entry in charges).items()):
        blocks, cost = blocks_of_facts(text), cost_of_facts(text).times(times)
        names = [None] if cap.block is None or blocks is None else blocks.names()
        for name in names:
            add(cap.label if name is None else replace(cap, block=name).label, config, cost)
    for config, costs in writeoffs:
        for label, cost in costs.items():
            if label == cap.label or (cap.block is not None and label.startswith(cap.label)):
                add(label, config, cost)
    return max(totals.values(), key=lambda total: (total.pure is None, total.pure or 0, total.renyi), default=ZERO)


def _bounds(dataset: DatasetConfig) -> Iterable[str]:
    for column in dataset.table.columns:
        if column.hidden:
            yield f"{column.name}: hidden from queries"
        elif column.values is not None:
            yield f"{column.name}: {len(column.values):,} declared keys"
        elif column.bounds is not None:
            yield f"{column.name}: {column.clamping}"


def _mechanisms(counted: Mapping[str, int]) -> Counter[str]:
    """Count how often each kind of mechanism was used, in all charges together."""
    uses: Counter[str] = Counter()

    def add(facts: Mapping[str, Any], times: int) -> None:
        name = str(facts["mechanism"])
        if name == _PARTS:
            for part, repeated in facts["parts"]:
                add(part, times * int(repeated))
        else:
            uses[MECHANISMS.get(name, name)] += times

    for text, times in counted.items():
        add(json.loads(text), times)
    return uses
