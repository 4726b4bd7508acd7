"""Inspection: what is spent and left, and a readable history. Reads a snapshot; never changes anything."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import TextIO

from hubbub.accounting.chain import Entry
from hubbub.accounting.cost import ZERO, PrivacyCost, priced
from hubbub.accounting.declarations import summary
from hubbub.accounting.disclosure import Shown, own_totals, shown
from hubbub.accounting.filters import admits
from hubbub.accounting.policy import Cap, Policy
from hubbub.accounting.store import Filter, Snapshot
from hubbub.answers.budget import MANY, BudgetOverview, CapDisplay, CapState, printable
from hubbub.core.numbers import brief
from hubbub.errors import ParameterError

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class CapUsage:
    """One cap, and all that was charged to it so far."""

    cap: Cap
    total: PrivacyCost


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """Where an analyst stands on a dataset: every cap, and the newest charge."""

    analyst: str
    dataset: str
    caps: tuple[CapUsage, ...]
    last: Entry | None
    show: CapDisplay = "rounded"

    def admits(self, loss: PrivacyCost, count: int = 1) -> bool:
        """Say whether every cap would admit so many queries of this loss, one after the other."""
        return _admitting(self.caps, loss, count)

    def overview(self) -> BudgetOverview:
        """Put it into plain facts, as far as the analyst is told of what others spent."""
        told = self._told()
        states = tuple(
            CapState(
                each.cap.scope,
                each.cap.name,
                each.cap.per,
                each.cap.budget.epsilon,
                each.cap.budget.delta,
                how.spent,
                how.left,
            )
            for each, how in told
        )
        return BudgetOverview(
            self.analyst,
            self.dataset,
            states,
            min(state.left for state in states),
            None if self.last is None else self.last.query,
            None if self.last is None else self._how_many(priced(self.last.facts)),
        )

    def left(self) -> Fraction:
        """Give the largest ε that the lasting caps would still admit, as far as the analyst is told."""
        return min(how.left for each, how in self._told() if each.cap.scope != "query")

    def largest(self, *, admitted: bool) -> Fraction:
        """Give the largest ε that a query may cost, where one was `admitted`, or not; 0 where that is not told."""
        told = self._told()
        return Fraction(0) if len(told) < len(self.caps) and not admitted else min(how.left for _, how in told)

    def _told(self) -> list[tuple[CapUsage, Shown]]:
        own = own_totals([(each.cap, each.total) for each in self.caps]).get(self.dataset, ZERO)
        told = [(each, shown(each.cap, each.total, own, self.show)) for each in self.caps]
        return [(each, how) for each, how in told if how is not None]

    def _how_many(self, loss: PrivacyCost) -> int | None:
        """Find the largest number of queries of this loss that pass every cap; None where that is not told."""
        told = self._told()
        rounded = [how.left for _, how in told if not how.exact]
        if len(told) < len(self.caps) or (rounded and not loss.pure):
            return None
        most = self._passing([each for each, how in told if how.exact], loss)
        return min([most, *(int(left // loss.pure) for left in rounded if loss.pure)])

    @staticmethod
    def _passing(caps: Sequence[CapUsage], loss: PrivacyCost) -> int:
        low, high = 0, MANY
        if _admitting(caps, loss, high):
            return high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _admitting(caps, loss, middle) else (low, middle)
        return low


def _admitting(caps: Iterable[CapUsage], loss: PrivacyCost, count: int) -> bool:
    return all(
        admits(each.cap.budget, each.total, loss if each.cap.scope == "query" else loss.times(count)) for each in caps
    )


def overview(
    snapshot: Snapshot, policy: Policy, analyst: str, dataset: str, time: int, *, exact: bool = False
) -> BudgetOverview:
    """Say what is spent and left for an analyst on a dataset at that time."""
    return budget_status(snapshot, policy, analyst, dataset, time, exact=exact).overview()


def budget_status(
    snapshot: Snapshot, policy: Policy, analyst: str, dataset: str, time: int, *, exact: bool = False
) -> BudgetStatus:
    """Find where an analyst stands on a dataset at that time; `exact` is for who may see what others spent."""
    totals = snapshot.totals()
    later = _later(snapshot, policy, max((total.sequence for total in totals.values()), default=0))
    states, newest = [], 0
    for cap in policy.caps(analyst, dataset):
        label = "" if cap.scope == "query" else cap.at(time)
        stored, (more, sequence) = totals.get(label), later.get(label, (ZERO, 0))
        states.append(
            CapUsage(cap, (ZERO if stored is None else PrivacyCost.from_json(json.loads(stored.spent))) + more)
        )
        if cap.scope == "analyst":
            newest = sequence or (0 if stored is None else stored.sequence)
    mine = Filter(kind="charge", analyst=analyst, dataset=dataset)
    last = next(snapshot.entries(mine, after=newest - 1), None) if newest else None
    return BudgetStatus(
        analyst, dataset, tuple(states), last, "exact" if exact else policy.show.get(dataset, "rounded")
    )


def _later(snapshot: Snapshot, policy: Policy, stored: int) -> dict[str, tuple[PrivacyCost, int]]:
    """Sum up what came after the totals were stored: little, and all of it under the policy in force."""
    later: dict[str, tuple[PrivacyCost, int]] = {}
    for entry in snapshot.entries(Filter(kind="charge"), after=stored):
        with suppress(ParameterError):  # an analyst whom a changed hubbub.yaml no longer knows
            for cap in policy.caps(entry.analyst, entry.dataset):
                before, _ = later.get(cap.at(entry.time), (ZERO, 0))
                later[cap.at(entry.time)] = (before + priced(entry.facts), entry.sequence)
    return later


@dataclass(frozen=True, slots=True)
class Line:
    """One entry for a person or a spreadsheet. `released` says of a charge whether its answer was recorded."""

    sequence: int
    time: str
    kind: str
    analyst: str
    dataset: str
    version: str
    epsilon: str
    facts: str
    query: str
    key: str
    charge: int | None
    released: bool | None
    config: str
    previous: str
    hash: str

    def text(self) -> str:
        """Say it in one line."""
        parts = [f"{self.sequence:>8}", self.time, f"{self.kind:<8}", self.analyst, self.dataset]
        if self.kind == "charge":
            parts += [self.epsilon, self.query, "" if self.released else "(no release)"]
        elif self.kind in ("release", "failure"):
            parts.append(f"of charge {self.charge}")
        else:
            plain = self.kind in ("forfeit", "reviewed")
            parts += [self.facts] if plain else [f"policy {self.config[:12]}…", summary(self.facts)]
        return printable("  ".join(part for part in parts if part))


def history(
    snapshot: Snapshot, which: Filter, *, unreleased: bool = False, newest_first: bool = False, limit: int | None = None
) -> Iterator[Line]:
    """Read the history; with `unreleased`, only charges whose answer was never recorded."""
    lines = _lines(snapshot, which, newest_first=newest_first)
    if unreleased:
        lines = (line for line in lines if line.kind == "charge" and not line.released)
    return islice(lines, limit)


def _lines(snapshot: Snapshot, which: Filter, *, newest_first: bool) -> Iterator[Line]:
    entries = snapshot.entries(which, newest_first=newest_first)
    while page := list(islice(entries, _PAGE)):
        numbers = [entry.sequence for entry in page]
        released = snapshot.released(min(numbers), max(numbers))
        for entry in page:
            is_charge = entry.kind == "charge"
            yield Line(
                entry.sequence,
                datetime.fromtimestamp(entry.time / 1_000_000, UTC).isoformat(timespec="milliseconds"),
                entry.kind,
                entry.analyst,
                entry.dataset,
                entry.version,
                _epsilon(entry.facts) if is_charge else "",
                entry.facts,
                entry.query,
                entry.key,
                entry.charge or None,
                entry.sequence in released if is_charge else None,
                entry.config.hex(),
                entry.previous.hex(),
                entry.hash.hex(),
            )


@lru_cache(maxsize=1024)
def _epsilon(facts: str) -> str:
    """Show the loss of one event: pure where it has one, else as it is."""
    loss = priced(facts)
    text = "zero-concentrated" if loss.pure is None else f"ε={brief(loss.pure)}"
    return f"{text}, δ={brief(loss.delta)}" if loss.delta else text


def write_json(lines: Iterable[Line], file: TextIO) -> None:
    """Write the history as a JSON array, one entry a line."""
    file.write("[")
    for number, line in enumerate(lines):
        file.write("\n" if number == 0 else ",\n")
        json.dump(asdict(line), file, ensure_ascii=False)
    file.write("\n]\n")


def write_csv(lines: Iterable[Line], file: TextIO) -> None:
    """Write the history as CSV; text that a spreadsheet would run as a formula gets an apostrophe before it."""
    names = [field.name for field in fields(Line)]
    writer = csv.writer(file)
    writer.writerow(names)
    for line in lines:
        writer.writerow([_cell(getattr(line, name)) for name in names])


def _cell(value: str | int | None) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if isinstance(value, str) and text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
