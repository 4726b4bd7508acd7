"""Inspection: what is spent and left, and a readable history. Reads a snapshot; never changes anything."""

import csv
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from fractions import Fraction
from itertools import islice
from typing import TextIO

from hubbub.accounting.filters import admits
from hubbub.accounting.policy import Cap, Policy
from hubbub.accounting.price import ZERO, Price, price
from hubbub.accounting.refusal import cost, down, left, whose
from hubbub.accounting.store import Filter, Snapshot
from hubbub.core.events import from_facts
from hubbub.core.numbers import brief
from hubbub.errors import ParameterError

#: Beyond this, "about N more" says nothing that a person needs.
MANY = 1_000_000

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class CapState:
    """One cap: what it allows, what is spent (None where its δ is too small to say), the largest ε still admitted."""

    cap: Cap
    label: str
    total: Price
    spent: Fraction | None
    left: Fraction


@dataclass(frozen=True, slots=True)
class Overview:
    """What one analyst has on one data set: every cap, and how many more like the last query would pass them all."""

    analyst: str
    dataset: str
    caps: tuple[CapState, ...]
    largest: Fraction
    last: str | None
    more: int | None

    def text(self) -> str:
        """Say it in words."""
        lines = [f"{self.analyst} on {self.dataset}: up to ε={down(self.largest)} in one more query"]
        for state in self.caps:
            budget = state.cap.budget
            spent = "an unknown part" if state.spent is None else brief(state.spent)
            delta = f", δ={brief(budget.delta)}" if budget.delta else ""
            where = whose(state.cap, self.analyst)
            if state.cap.scope == "query":
                lines.append(f"  at most ε={brief(budget.epsilon)} {where}")
            else:
                lines.append(f"  spent {spent} of ε={brief(budget.epsilon)}{delta}, {down(state.left)} left, {where}")
        if self.more is not None:
            count = f"more than {MANY}" if self.more >= MANY else f"about {self.more}"
            lines.append(f"  {count} more queries like your last: {printable(self.last or '')}")
        return "\n".join(lines)

    def form(self) -> dict[str, object]:
        """Give it for JSON; numbers are exact, as text."""
        return {
            "analyst": self.analyst,
            "dataset": self.dataset,
            "largest_epsilon": str(self.largest),
            "last_query": self.last,
            "more_like_last": self.more,
            "caps": [
                {
                    "scope": state.cap.scope,
                    "name": state.cap.name,
                    "per": state.cap.per,
                    "epsilon": str(state.cap.budget.epsilon),
                    "delta": str(state.cap.budget.delta),
                    "spent": None if state.spent is None else str(state.spent),
                    "left": str(state.left),
                }
                for state in self.caps
            ],
        }


def overview(snapshot: Snapshot, policy: Policy, analyst: str, dataset: str, time: int) -> Overview:
    """Say what is spent and left for an analyst on a data set at that time."""
    totals = snapshot.totals()
    later = _later(snapshot, policy, max((total.sequence for total in totals.values()), default=0))
    states, newest = [], 0
    for cap in policy.caps(analyst, dataset):
        label = "" if cap.scope == "query" else cap.at(time)
        stored, (more, sequence) = totals.get(label), later.get(label, (ZERO, 0))
        total = (ZERO if stored is None else Price.from_json(json.loads(stored.spent))) + more
        states.append(CapState(cap, label, total, cost(cap.budget, total), left(cap.budget, total)))
        if cap.scope == "analyst":
            newest = sequence or (0 if stored is None else stored.sequence)
    mine = Filter(kind="charge", analyst=analyst, dataset=dataset)
    last = next(snapshot.entries(mine, after=newest - 1), None) if newest else None
    return Overview(
        analyst, dataset, tuple(states), min(state.left for state in states), None if last is None else last.query,
        None if last is None else _how_many(states, _loss(last.facts)),
    )  # fmt: skip


def _later(snapshot: Snapshot, policy: Policy, stored: int) -> dict[str, tuple[Price, int]]:
    """Sum up what came after the totals were stored: little, and all of it under the policy in force."""
    later: dict[str, tuple[Price, int]] = {}
    for entry in snapshot.entries(Filter(kind="charge"), after=stored):
        with suppress(ParameterError):  # an analyst whom a changed hubbub.yaml no longer knows
            for cap in policy.caps(entry.analyst, entry.dataset):
                before, _ = later.get(cap.at(entry.time), (ZERO, 0))
                later[cap.at(entry.time)] = (before + _loss(entry.facts), entry.sequence)
    return later


def _loss(facts: str) -> Price:
    return price(from_facts(json.loads(facts)))


def _how_many(states: Iterable[CapState], loss: Price) -> int:
    """Find the largest number of queries of this loss, one after the other, that pass every cap."""
    caps = list(states)

    def fits(count: int) -> bool:
        return all(
            admits(state.cap.budget, state.total, loss if state.cap.scope == "query" else loss.times(count))
            for state in caps
        )

    low, high = 0, MANY
    if fits(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


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
        elif self.kind == "release":
            parts.append(f"of charge {self.charge}")
        else:
            parts.append(self.facts if self.kind == "forfeit" else f"policy {self.config[:12]}…")
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
                entry.sequence, datetime.fromtimestamp(entry.time / 1_000_000, UTC).isoformat(timespec="milliseconds"),
                entry.kind, entry.analyst, entry.dataset, entry.version, _epsilon(entry.facts) if is_charge else "",
                entry.facts, entry.query, entry.key, entry.charge or None,
                entry.sequence in released if is_charge else None, entry.config.hex(), entry.previous.hex(),
                entry.hash.hex(),
            )  # fmt: skip


def _epsilon(facts: str) -> str:
    """Show the loss of one event: pure where it has one, else as it is."""
    loss = _loss(facts)
    text = "zero-concentrated" if loss.pure is None else f"ε={brief(loss.pure)}"
    return f"{text}, δ={brief(loss.delta)}" if loss.delta else text


def printable(text: str) -> str:
    r"""Make text safe for a terminal: analysts write queries, and a privacy officer reads them.

    >>> printable("count\x1b[2J\n")
    'count\\x1b[2J\\n'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


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
