"""Read-only reports on the ledger: spent and remaining budget, and the history of entries."""

import csv
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from itertools import islice
from operator import add
from typing import Self, TextIO

from hubbub.accounting.chain import Entry
from hubbub.accounting.cost import ZERO, PrivacyCost, blocks_of_facts, cost_of_facts, cost_of_total
from hubbub.accounting.declarations import summary
from hubbub.accounting.disclosure import CapDisclosure, approximate_cost, disclose, epsilon_under, own_totals
from hubbub.accounting.fairness import day_of, holds, less, shares
from hubbub.accounting.filters import admits, how_often
from hubbub.accounting.policy import DAY, Cap, Policy, basis, has_blocks, lifetime_of
from hubbub.accounting.refusal import CapError, budget_error
from hubbub.accounting.store import EntryFilter, Snapshot, StoredTotal
from hubbub.answers.budget import MANY, BlockState, BudgetOverview, CapDisplay, CapState, printable
from hubbub.core.blocks import BlockSet
from hubbub.core.numbers import brief
from hubbub.errors import ParameterError

_PAGE = 1000
#: The δ at which the history expresses Gaussian charges.
_DELTA = Fraction(1, 10**9)


@dataclass(frozen=True, slots=True)
class CapUsage:
    """One cap and its total."""

    cap: Cap
    total: PrivacyCost


@dataclass(frozen=True)
class BudgetStatus:
    """The budget of an analyst on a dataset: every cap, and the newest charge."""

    analyst: str
    dataset: str
    caps: tuple[CapUsage, ...]
    last: Entry | None
    show: CapDisplay = "rounded"

    def admits(self, loss: PrivacyCost, count: int = 1) -> bool:
        """Say whether `count` queries of this cost fit under every cap."""
        return _admit(self.caps, loss, count)

    def overview(self) -> BudgetOverview:
        """Summarize the budget as the analyst may see it."""
        visible = self._visible
        states = tuple(
            CapState(
                usage.cap.scope,
                usage.cap.name,
                usage.cap.per,
                usage.cap.budget.epsilon,
                usage.cap.budget.delta,
                seen.spent,
                seen.rest(usage.cap.budget),
                # of one's own charges only: a shared total would tell about others
                composed=usage.cap.scope == "analyst" and seen.spent != usage.total.pure,
                block=usage.cap.block or "",
            )
            for usage, seen in visible
        )
        # an answer of a session costs nothing more: how many of them fit is up to the session
        last = None if self.last is None or cost_of_facts(self.last.facts) == ZERO else self.last
        return BudgetOverview(
            self.analyst,
            self.dataset,
            states,
            min(seen.left for _, seen in visible),
            None if last is None else last.query,
            None if last is None else self._how_many(cost_of_facts(last.facts)),
        )

    def left(self) -> Fraction:
        """Give the rest of the lasting cap that has least left, as the analyst may see it."""
        return min(seen.rest(usage.cap.budget) for usage, seen in self._visible if usage.cap.scope != "query")

    def largest(self, *, admitted: bool) -> Fraction:
        """Give the largest ε that a query may cost, after one was `admitted` or refused; 0 if a cap is hidden."""
        visible = self._visible
        hidden = len(visible) < len(self.caps) and not admitted
        return Fraction(0) if hidden else min(seen.left for _, seen in visible)

    def refusal(self, loss: PrivacyCost) -> CapError | None:
        """Give the error with which a charge of this cost would be refused now; None if it is within budget."""
        caps = [(usage.cap, usage.total) for usage in self.caps]
        for cap, total in caps:
            if not admits(cap.budget, total, loss):
                return budget_error(cap, total, loss, caps, self.analyst, {self.dataset: self.show})
        return None

    def how_many(self, loss: PrivacyCost) -> int | None:
        """Give the number of queries of this cost that fit under every cap; None if too little is shown to tell."""
        count = self._how_many(loss)
        by_delta = [int(seen.delta_left // loss.delta) for _, seen in self._visible if loss.delta]
        return None if count is None else min([count, *by_delta])

    @cached_property
    def _visible(self) -> list[tuple[CapUsage, CapDisclosure]]:
        own = own_totals([(usage.cap, usage.total) for usage in self.caps])
        seen = [
            (usage, disclose(usage.cap, usage.total, own.get((self.dataset, usage.cap.block), ZERO), self.show))
            for usage in self.caps
        ]
        return [(usage, cap) for usage, cap in seen if cap is not None]

    def _how_many(self, loss: PrivacyCost) -> int | None:
        """Give the largest number of queries of this cost that fit under every cap; None if it is hidden."""
        visible = self._visible
        rounded = [seen.left for _, seen in visible if not seen.exact]
        if len(visible) < len(self.caps) or (rounded and not loss.pure):
            return None
        exact = [_how_often(usage, loss) for usage, seen in visible if seen.exact]
        return min([MANY, *exact, *(int(left // loss.pure) for left in rounded if loss.pure)])


def _how_often(usage: CapUsage, loss: PrivacyCost) -> int:
    if usage.cap.scope == "query":
        return MANY if admits(usage.cap.budget, usage.total, loss) else 0
    return how_often(usage.cap.budget, usage.total, loss, MANY)


def _admit(caps: Iterable[CapUsage], loss: PrivacyCost, count: int) -> bool:
    return all(
        admits(usage.cap.budget, usage.total, loss if usage.cap.scope == "query" else loss.times(count))
        for usage in caps
    )


def overview(
    snapshot: Snapshot, policy: Policy, analyst: str, dataset: str, time: int, *, exact: bool = False
) -> BudgetOverview:
    """Summarize the spent and remaining budget of an analyst on a dataset at this time."""
    return budget_status(snapshot, policy, analyst, dataset, time, exact=exact).overview()


@dataclass(frozen=True, slots=True)
class RecordedTotals:
    """The stored totals of a ledger and the few charges after them: what every budget follows from."""

    stored: Mapping[str, StoredTotal]
    later: tuple[Entry, ...]

    @classmethod
    def read(cls, snapshot: Snapshot) -> Self:
        """Read them."""
        stored = snapshot.totals()
        newest = max((total.sequence for total in stored.values()), default=0)
        return cls(stored, tuple(snapshot.entries(EntryFilter(kind="charge"), after=newest)))

    def usage(
        self, policy: Policy, analyst: str, dataset: str, time: int, blocks: BlockSet | None = None
    ) -> tuple[tuple[CapUsage, ...], int]:
        """Give every cap of an analyst on a dataset with its total, and the number of their newest charge, or 0.

        Of a dataset with blocks, those on some `blocks`: by default on the newest one that exists.
        """
        later = self._later(policy)
        states, newest = [], 0
        blocks = newest_block(policy, dataset, time) if blocks is None else blocks
        caps, day = policy.charged(analyst, dataset, blocks), day_of(time)

        def total(cap: Cap) -> PrivacyCost:
            label = "" if cap.scope == "query" else cap.at(time)
            stored, more = self.stored.get(label), later.get(label)
            before = ZERO if stored is None else cost_of_total(stored.spent)
            return before if more is None else before + more.spent()

        for cap in caps:
            if holds(cap, day):
                states.append(CapUsage(cap, total(cap)))
            if cap.scope == "analyst":
                own = (self.stored.get(cap.at(time)), later.get(cap.at(time)))
                newest = max([newest, *(each.sequence for each in own if each is not None)])
        limits = shares(policy, analyst, caps, day)
        states += [CapUsage(each.cap, less(total(each.of), map(total, each.without))) for each in limits]
        return tuple(states), newest

    def least_left(
        self, policy: Policy, analyst: str, read: Mapping[str, BlockSet | None], time: int
    ) -> Fraction | None:
        """Give what an analyst has left on the dataset or block that has least left; None without a dataset."""
        shows = [(name, blocks, policy.show.get(name, "rounded")) for name, blocks in read.items()]
        usages = [(name, self.usage(policy, analyst, name, time, blocks)[0], show) for name, blocks, show in shows]
        return min((BudgetStatus(analyst, name, caps, None, show).left() for name, caps, show in usages), default=None)

    def _later(self, policy: Policy) -> dict[str, "_LaterCharges"]:
        """Count the charges after the stored totals by the totals that they are part of, under the policy in force."""
        # equal charges of one day count against the same totals
        alike: dict[tuple[str, str, str, int], list[Entry]] = {}
        for entry in self.later:
            alike.setdefault((entry.analyst, entry.dataset, entry.facts, entry.time // DAY), []).append(entry)
        by_label: dict[str, _LaterCharges] = {}
        for same in alike.values():
            entry = same[-1]
            with suppress(ParameterError):  # an analyst who was removed from hubbub.yaml
                for cap in policy.charged(entry.analyst, entry.dataset, blocks_of_facts(entry.facts)):
                    by_label.setdefault(cap.at(entry.time), _LaterCharges()).add(entry, len(same))
        return by_label


class _LaterCharges:
    """Charges after the stored totals that are part of one total: how many of each event, and the newest of them."""

    __slots__ = ("_counts", "sequence")

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self.sequence = 0

    def add(self, entry: Entry, count: int) -> None:
        """Add some equal charges, of which this one is the newest."""
        self._counts[entry.facts] += count
        self.sequence = max(self.sequence, entry.sequence)

    def spent(self) -> PrivacyCost:
        """Give what they cost together: k equal charges cost exactly k times as much as one."""
        return reduce(add, [cost_of_facts(facts).times(count) for facts, count in self._counts.items()])


def budget_status(
    snapshot: Snapshot, policy: Policy, analyst: str, dataset: str, time: int, *, exact: bool = False
) -> BudgetStatus:
    """Read the budget of an analyst on a dataset at this time; `exact` shows shared budgets without rounding.

    Of a dataset with blocks, that on its newest one.
    """
    return block_statuses(snapshot, policy, analyst, dataset, time, None, exact=exact)[0]


def block_statuses(
    snapshot: Snapshot,
    policy: Policy,
    analyst: str,
    dataset: str,
    time: int,
    blocks: BlockSet | None,
    *,
    exact: bool = False,
) -> list[BudgetStatus]:
    """Read the budget of an analyst on each of some blocks; one status for a dataset without them."""
    totals = RecordedTotals.read(snapshot)
    each = [None] if blocks is None else [BlockSet.of(blocks.by, [block]) for block in blocks]
    usages = [totals.usage(policy, analyst, dataset, time, block) for block in each]
    newest = max((number for _, number in usages), default=0)
    mine = EntryFilter(kind="charge", analyst=analyst, dataset=dataset)
    last = next(snapshot.entries(mine, after=newest - 1), None) if newest else None
    show: CapDisplay = "exact" if exact else policy.show.get(dataset, "rounded")
    return [BudgetStatus(analyst, dataset, caps, last, show) for caps, _ in usages]


def overview_of_blocks(statuses: Sequence[BudgetStatus], blocks: BlockSet, closed: Collection[str]) -> BudgetOverview:
    """Summarize the budget on the newest of some blocks, with a line for each of them.

    How many more queries like the last one fit is that of the block with least left among those that it was charged to;
    None if one of them is not among `blocks`.
    """
    views = [status.overview() for status in statuses]
    lines = []
    for name, view in zip(blocks.names(), views, strict=True):
        own = next((state.spent for state in view.caps if state.scope == "analyst"), None)
        shut = name in closed
        lines.append(BlockState(name, own, Fraction(0) if shut else view.largest, 0 if shut else view.more, shut))
    last = statuses[-1].last
    named = None if last is None else blocks_of_facts(last.facts)
    fits = [] if named is None else [line.more for line in lines if line.name in set(named.names())]
    counts = [count for count in fits if count is not None]
    known = named is not None and len(counts) == len(named)
    return replace(views[-1], blocks=tuple(lines), more=min(counts) if known else None)


def newest_block(policy: Policy, dataset: str, time: int) -> BlockSet | None:
    """Give the newest block of a dataset that exists, or its first one; None for a dataset without blocks."""
    declared = policy.blocks(dataset)
    if declared is None:
        return None
    existing = declared.existing(datetime.fromtimestamp(time / 1_000_000, UTC).date())
    return BlockSet.of(declared.by, [existing.ranges[-1][1] if existing.ranges else declared.first])


def spending(
    snapshot: Snapshot, policy: Policy, dataset: str, time: int, *, limit: int
) -> dict[str, list[tuple[datetime, Fraction]]]:
    """Give the spent ε of each analyst under their own cap after each of the newest charges on a dataset.

    The last amount of an analyst is what their budget overview shows. Those who were removed have no cap any more:
    their charges are expressed under the cap of the dataset.
    """
    newest = list(islice(snapshot.entries(EntryFilter(kind="charge", dataset=dataset), newest_first=True), limit))
    charges: dict[str, list[tuple[datetime, PrivacyCost]]] = {}
    for entry in reversed(newest):
        moment = datetime.fromtimestamp(entry.time / 1_000_000, UTC)
        charges.setdefault(entry.analyst, []).append((moment, cost_of_facts(entry.facts)))
    lifetime = (lifetime_of(policy.datasets[dataset]) or basis(policy.datasets[dataset])).budget
    series: dict[str, list[tuple[datetime, Fraction]]] = {}
    for analyst, costs in charges.items():
        listed = sum((cost for _, cost in costs), ZERO)
        budget, total = lifetime, listed
        with suppress(ParameterError):  # an analyst who was removed from hubbub.yaml
            caps = () if has_blocks(policy.datasets[dataset]) else policy.caps(analyst, dataset)
            if caps:
                usage = budget_status(snapshot, policy, analyst, dataset, time).caps
                budget, total = next((each.cap.budget, each.total) for each in usage if each.cap.scope == "analyst")
        spent = _before(total, listed)
        points = series[analyst] = []
        for moment, cost in costs:
            spent += cost
            amount = epsilon_under(budget, spent)
            points.append((moment, budget.epsilon if amount is None else amount))
    return series


def _before(total: PrivacyCost, listed: PrivacyCost) -> PrivacyCost:
    """Give the total before some of its charges."""
    renyi = tuple(whole - part for whole, part in zip(total.renyi, listed.renyi, strict=True))
    if not any(renyi):
        return ZERO
    pure = None if total.pure is None or listed.pure is None else total.pure - listed.pure
    gaussian = None
    if total.gaussian is not None and listed.gaussian is not None:
        gaussian = tuple(whole - part for whole, part in zip(total.gaussian, listed.gaussian, strict=True))
    return PrivacyCost(pure, renyi, total.delta - listed.delta, gaussian)


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """One entry of the history. `released` says whether the release of a charge was recorded."""

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
        """Format the entry in one line."""
        parts = [f"{self.sequence:>8}", self.time, f"{self.kind:<8}", self.analyst, self.dataset]
        if self.kind == "charge":
            parts += [self.epsilon, self.query, "" if self.released else "(no release)"]
        elif self.kind in ("release", "failure"):
            parts.append(f"of charge {self.charge}")
        else:
            shows_facts = self.kind in ("forfeit", "reviewed", "decision", "publication")
            parts += [self.facts] if shows_facts else [f"policy {self.config[:12]}…", summary(self.facts)]
        return printable("  ".join(part for part in parts if part))


def history(
    snapshot: Snapshot,
    which: EntryFilter,
    *,
    unreleased: bool = False,
    newest_first: bool = False,
    limit: int | None = None,
) -> Iterator[HistoryLine]:
    """Read the history; with `unreleased`, only charges without a recorded release."""
    lines = _lines(snapshot, which, newest_first=newest_first)
    if unreleased:
        lines = (line for line in lines if line.kind == "charge" and not line.released)
    return islice(lines, limit)


def _lines(snapshot: Snapshot, which: EntryFilter, *, newest_first: bool) -> Iterator[HistoryLine]:
    entries = snapshot.entries(which, newest_first=newest_first)
    while page := list(islice(entries, _PAGE)):
        numbers = [entry.sequence for entry in page]
        released = snapshot.released(min(numbers), max(numbers))
        for entry in page:
            is_charge = entry.kind == "charge"
            yield HistoryLine(
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
    """Format the cost of one event; a loss without a pure ε is expressed at a fixed δ."""
    loss = cost_of_facts(facts)
    epsilon, delta = approximate_cost(loss, delta=_DELTA)
    return f"ε={brief(epsilon)}, δ={brief(delta)}" if delta else f"ε={brief(epsilon)}"


def write_json(lines: Iterable[HistoryLine], file: TextIO) -> None:
    """Write the history as a JSON array, one entry a line."""
    file.write("[")
    for number, line in enumerate(lines):
        file.write("\n" if number == 0 else ",\n")
        json.dump(asdict(line), file, ensure_ascii=False)
    file.write("\n]\n")


def write_csv(lines: Iterable[HistoryLine], file: TextIO) -> None:
    """Write the history as CSV; text that a spreadsheet would run as a formula is prefixed with an apostrophe."""
    names = [field.name for field in fields(HistoryLine)]
    writer = csv.writer(file)
    writer.writerow(names)
    for line in lines:
        writer.writerow([_cell(getattr(line, name)) for name in names])


def _cell(value: str | int | None) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if isinstance(value, str) and text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
