"""Everything asked so far, by one analyst, by a group or by everybody: what it amounts to, from the ledger's charges.

Two readings, and both are said. However each question was chosen by the answers before it, pure losses add up. Taken as
a list that was fixed beforehand, the same charges amount to less, by their Rényi curves or loss distributions; that
describes the list, and promises nothing about analysts who choose as they go. What those can get at most is the cap.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from hubbub.accounting.chain import Entry
from hubbub.accounting.cost import ZERO, PrivacyCost, cost_of_facts
from hubbub.accounting.policy import Policy
from hubbub.accounting.store import EntryFilter, Snapshot
from hubbub.core.events import Composed, Event, from_facts
from hubbub.core.numbers import brief
from hubbub.core.schema import unknown_dataset
from hubbub.errors import MechanismError, ParameterError
from hubbub.semantics import tradeoff
from hubbub.semantics.odds import LEVEL, Meaning, in_a_hundred, meaning, percent
from hubbub.semantics.tradeoff import TradeOff


@dataclass(frozen=True, slots=True)
class QueryHistory:
    """The charges of somebody on a dataset, and the cap that all they ever ask must keep."""

    who: str
    dataset: str
    facts: Counter[str]
    written_off: bool
    cap_epsilon: Fraction
    cap_delta: Fraction

    @property
    def count(self) -> int:
        """How many charges there are."""
        return self.facts.total()

    @property
    def total(self) -> PrivacyCost:
        """What they add up to."""
        return sum((cost_of_facts(text).times(times) for text, times in self.facts.items()), ZERO)

    @property
    def events(self) -> tuple[Event, ...]:
        """What was done, as one event."""
        parts = tuple((from_facts(json.loads(text)), times) for text, times in sorted(self.facts.items()))
        return (Composed(parts),) if parts else ()

    def tradeoff(self) -> TradeOff:
        """Give what the best test could do with all of it as one list; by loss distributions where these can be had."""
        total = self.total
        try:
            found = tradeoff.tight(self.events)
        except MechanismError:  # no such package here, or Gaussian noise on vectors
            return tradeoff.composed(total)
        if total.pure is None:
            return found
        # the pure sum lies between two points of the grid
        return TradeOff((*found.points, (total.pure, min(Fraction(1), total.delta))), certain=False)

    def plain(self) -> Meaning | None:
        """Say what the sum means, however the questions were chosen; None for Gaussian noise, which has no such sum."""
        total = self.total
        if total.pure is None:
            return None
        return meaning(epsilon=total.pure, delta=min(Fraction(1), total.delta))

    @property
    def heading(self) -> str:
        """Say what this is about."""
        charges = "1 charge" if self.count == 1 else f"{self.count:,} charges"
        return f"Everything asked so far by {self.who} on {self.dataset}: {charges}."

    @property
    def sentences(self) -> tuple[str, ...]:
        """Say what it amounts to."""
        if not self.count:
            return (self.heading, "Nothing was asked, so nobody can have learned anything from it.", *self._caveats())
        found = [self.heading]
        plain, curve = self.plain(), self.tradeoff()
        if plain is not None:
            found += [_sum(plain), plain.guesses]
        else:
            found.append("Gaussian noise has no sum of ε; its questions are priced by curves.")
        most = "at most" if curve.certain else "at most about"
        found.append(
            f"Taken as a list that was fixed beforehand, {most} {in_a_hundred(curve.guess())} of 100 guesses are right,"
            f" and a test that accuses 5 % of those who are not in the data finds {most} {percent(curve.power(LEVEL))}"
            " of those who are."
        )
        return (*found, *self._caveats())

    def _caveats(self) -> list[str]:
        cap = f"ε = {brief(self.cap_epsilon)}" + (f" and δ = {brief(self.cap_delta)}" if self.cap_delta else "")
        found = [f"Whatever else is asked, and however it is chosen, the cap holds: {cap}."]
        if self.written_off:
            found.append("A part of the ledger was lost and written off; what was asked there is not counted here.")
        return found

    def to_json(self) -> dict[str, object]:
        """Give it for JSON."""
        curve = self.tradeoff()
        total = self.total
        return {
            "who": self.who,
            "dataset": self.dataset,
            "charges": self.count,
            "epsilon": None if total.pure is None else str(total.pure),
            "delta": str(total.delta),
            "certain": curve.certain,
            "guess": float(curve.guess()),
            "tradeoff": [[float(level), float(found)] for level, found in curve.curve()],
            "sentences": list(self.sentences),
        }


def _sum(plain: Meaning) -> str:
    own = f" and δ = {brief(plain.delta)}" if plain.delta else ""
    return f"However the questions were chosen, together they cost ε = {brief(plain.epsilon)}{own}."


def query_history(
    snapshot: Snapshot, policy: Policy, dataset: str, *, analyst: str | None = None, group: str | None = None
) -> QueryHistory:
    """Read from a ledger what an analyst, a group (its members of today) or, if neither is named, everybody asked."""
    if dataset not in policy.datasets:
        raise unknown_dataset(dataset, tuple(policy.datasets))
    (lifetime,) = [cap.budget for cap in policy.datasets[dataset] if cap.scope == "dataset" and cap.per is None]
    who, members, budget = "everybody", None, lifetime
    if analyst is not None:
        if analyst not in policy.analysts:
            raise ParameterError("HB121", f"there is no analyst called {analyst!r}.", "hubbub.yaml lists them.")
        (budget,) = [cap.budget for cap in policy.caps(analyst, dataset) if cap.scope == "analyst"]
        who, members = analyst, frozenset({analyst})
    elif group is not None:
        if group not in policy.groups:
            raise ParameterError("HB121", f"there is no group called {group!r}.", "hubbub.yaml lists them.")
        names, caps = policy.groups[group]
        budget = caps[dataset].budget if dataset in caps else lifetime
        who, members = f"the group {group}", frozenset(names)
    charges = _of(snapshot.entries(EntryFilter(kind="charge", analyst=analyst, dataset=dataset)), members)
    lost = next(snapshot.entries(EntryFilter(kind="forfeit")), None) is not None
    return QueryHistory(who, dataset, charges, lost, budget.epsilon, budget.delta)


def _of(entries: Iterable[Entry], members: frozenset[str] | None) -> Counter[str]:
    return Counter(entry.facts for entry in entries if members is None or entry.analyst in members)
