"""What happened between two moments: charges by analyst, changes of hubbub.yaml, failed runs and write-offs.

Tested in tests/reports/test_changes.py.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hubbub.accounting.chain import Entry
from hubbub.accounting.cost import ZERO, cost_of_facts
from hubbub.accounting.disclosure import epsilon_under
from hubbub.accounting.store import EntryFilter
from hubbub.config import Config
from hubbub.core.numbers import brief
from hubbub.curator.opening import store_of
from hubbub.errors import ParameterError
from hubbub.reports.facts import moment


@dataclass(frozen=True, slots=True)
class Changes:
    """What the ledger records from `since` up to `until`."""

    since: datetime
    until: datetime
    spending: tuple[tuple[str, str, int, str], ...]
    policies: tuple[tuple[datetime, tuple[str, ...]], ...]
    others: tuple[str, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """Everything as sentences."""
        lines = [
            f"{analyst} on {dataset}: {count:,} charge{'s' if count > 1 else ''}, ε = {epsilon}"
            for analyst, dataset, count, epsilon in self.spending
        ]
        for time, changed in self.policies:
            lines += [f"{time:%Y-%m-%d %H:%M} hubbub.yaml: {change}" for change in changed]
        return (*(lines or ["no charges and no changes of hubbub.yaml"]), *self.others)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "since": self.since.isoformat(),
            "until": self.until.isoformat(),
            "spending": [
                {"analyst": analyst, "dataset": dataset, "charges": count, "epsilon": epsilon}
                for analyst, dataset, count, epsilon in self.spending
            ],
            "policies": [{"time": time.isoformat(), "changes": list(changed)} for time, changed in self.policies],
            "others": list(self.others),
        }


def changes(config: Config, since: datetime, until: datetime) -> Changes:
    """Compare the ledger at two moments."""
    if not since < until:
        raise ParameterError("HB136", "The first time is not before the second.", "Give the earlier time first.")
    store = store_of(config, read_only=True)
    try:
        with store.snapshot() as snapshot:
            before = [*snapshot.entries(EntryFilter(kind="policy", until=_at(since)))]
            entries = [*snapshot.entries(EntryFilter(since=_at(since), until=_at(until)))]
    finally:
        store.close()
    return Changes(
        since,
        until,
        tuple(_spending(config, entries)),
        tuple(_policies(before[-1:], [entry for entry in entries if entry.kind == "policy"])),
        tuple(_others(entries)),
    )


def _at(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000)


def _spending(config: Config, entries: list[Entry]) -> Iterator[tuple[str, str, int, str]]:
    counts: dict[tuple[str, str], Counter[str]] = {}
    for entry in entries:
        if entry.kind == "charge":
            counts.setdefault((entry.analyst, entry.dataset), Counter())[entry.facts] += 1
    for (analyst, dataset), facts in sorted(counts.items()):
        cost = sum((cost_of_facts(text).times(times) for text, times in sorted(facts.items())), ZERO)
        budgets = [cap.budget for cap in config.policy.datasets.get(dataset, ()) if cap.scope == "dataset"]
        epsilon = epsilon_under(budgets[0], cost) if budgets else cost.pure
        yield analyst, dataset, facts.total(), "not expressible without δ" if epsilon is None else brief(epsilon)


def _policies(before: list[Entry], during: list[Entry]) -> Iterator[tuple[datetime, tuple[str, ...]]]:
    known: Mapping[str, Any] = json.loads(before[0].facts) if before else {}
    for entry in during:
        now = json.loads(entry.facts)
        yield moment(entry), tuple(_differences(known, now)) or ("no change of budgets or declarations",)
        known = now


def _differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """List the keys that were added, removed or changed, with their values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            where = f"{path}.{key}" if path else key
            if key not in old:
                yield f"added {where}: {_value(new[key])}"
            elif key not in new:
                yield f"removed {where}: {_value(old[key])}"
            else:
                yield from _differences(old[key], new[key], where)
    elif old != new:
        yield f"changed {path}: {_value(old)} → {_value(new)}"


def _value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= 120 else f"{text[:117]}…"


_KINDS = {
    "failure": "a run failed after its charge",
    "forfeit": "budget was written off",
    "reviewed": "failed runs were reviewed",
    "decision": "an answer was approved or declined",
    "publication": "publishing a release was requested, decided, made or undone",
}


def _others(entries: list[Entry]) -> Iterator[str]:
    for entry in entries:
        if entry.kind in _KINDS:
            whose = " ".join(part for part in (entry.analyst, f"on {entry.dataset}" if entry.dataset else "") if part)
            where = f"entry {entry.sequence}{f', {whose}' if whose else ''}"
            yield f"{moment(entry):%Y-%m-%d %H:%M} {_KINDS[entry.kind]} ({where})"
