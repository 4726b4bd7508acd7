"""The total privacy cost of all queries so far by an analyst, a group or everybody, computed from the ledger.

There are two readings. However the queries were chosen, their total is what counts against the cap: the sum of the
pure losses, or less at the δ of the cap. For a list of queries fixed in advance, the same charges amount to less still,
by their Rényi curves or privacy loss distributions; this describes the list and gives no guarantee about adaptive
analysts. The cap bounds what those can learn.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from hubbub.accounting.blocks import closed_by
from hubbub.accounting.chain import Entry
from hubbub.accounting.cost import ZERO, PrivacyCost, cost_of_facts, event_of_facts
from hubbub.accounting.disclosure import epsilon_under
from hubbub.accounting.filters import Budget
from hubbub.accounting.policy import Policy, basis, lifetime_of
from hubbub.accounting.store import EntryFilter, Snapshot
from hubbub.core.events import Composed, Event
from hubbub.core.numbers import brief
from hubbub.core.odds import LARGE, factor, three_digits, times
from hubbub.core.schema import unknown_dataset
from hubbub.errors import MechanismError, ParameterError
from hubbub.semantics import tradeoff
from hubbub.semantics.odds import LEVEL, Meaning, in_a_hundred, meaning, percent, power_sentence
from hubbub.semantics.pointwise import exceedance_of
from hubbub.semantics.tradeoff import TradeOff


@dataclass(frozen=True, slots=True)
class QueryHistory:
    """The charges of an analyst, a group or everybody on a dataset, and the cap on all their queries.

    by_block  whether the cap holds in each block on its own, so that new blocks bring new budget
    """

    who: str
    dataset: str
    facts: Counter[str]
    written_off: bool
    cap_epsilon: Fraction
    cap_delta: Fraction
    by_block: bool = False

    @property
    def count(self) -> int:
        """The number of charges."""
        return self.facts.total()

    @property
    def total(self) -> PrivacyCost:
        """The total privacy cost."""
        return sum((cost_of_facts(text).times(times) for text, times in self.facts.items()), ZERO)

    @property
    def events(self) -> tuple[Event, ...]:
        """All charges as one composed event, if there are any."""
        parts = tuple((event_of_facts(text), times) for text, times in sorted(self.facts.items()))
        return (Composed(parts),) if parts else ()

    def tradeoff(self) -> TradeOff:
        """Return the trade-off curve of the charges as a fixed list, from loss distributions where available."""
        total = self.total
        try:
            curve = tradeoff.tight(self.events)
        except MechanismError:  # the package is not installed, or Gaussian noise on vectors
            return tradeoff.composed(total)
        if total.pure is None:
            return curve
        # the pure sum lies between two points of the grid
        return TradeOff((*curve.points, (total.pure, min(Fraction(1), total.delta))), certain=False)

    def plain(self) -> Meaning | None:
        """Return what all charges together mean, by the ε that counts against the cap; None if the cap has no δ for it.

        It is the sum of the pure losses, or less at the δ of the cap, where the charges compose to less.
        """
        total = self.total
        epsilon = epsilon_under(Budget(self.cap_epsilon, self.cap_delta), total)
        if epsilon is None:
            return None
        delta = total.delta if epsilon == total.pure else self.cap_delta
        return meaning(epsilon=epsilon, delta=min(Fraction(1), delta))

    @property
    def heading(self) -> str:
        """The heading: whose queries these are, and how many."""
        charges = "1 charge" if self.count == 1 else f"{self.count:,} charges"
        return f"All queries so far by {self.who} on {self.dataset}: {charges}."

    @property
    def sentences(self) -> tuple[str, ...]:
        """The heading and what the charges amount to."""
        if not self.count:
            return (
                self.heading,
                "There were no queries, so nobody can have learned anything from them.",
                *self._caveats(),
            )
        lines = [self.heading]
        plain, curve = self.plain(), self.tradeoff()
        if plain is not None:
            lines += [_sum(plain), plain.guesses, plain.odds]
        else:
            lines.append("Queries with Gaussian noise have no pure ε, and the cap has no δ to express their cost at.")
        most = "at most" if curve.certain else "at most about"
        power = power_sentence(f"{most} {percent(curve.power(LEVEL))}")
        lines.append(
            "If all queries had been fixed before the first answer was seen, a tighter bound would hold:"
            f" {most} {in_a_hundred(curve.guess())} of 100 guesses are right, a{power.removeprefix('A')[:-1]}, and the"
            f" answers tell {most} {three_digits(curve.bits())} bits about a yes-or-no fact about one person."
        )
        if plain is not None and plain.delta:
            lines.append(self._exceedance(plain, curve))
        return (*lines, *self._caveats())

    def _exceedance(self, plain: Meaning, curve: TradeOff) -> str:
        """State how often such a list raises the odds of the truth by more than e^ε."""
        at, chance = exceedance_of(self.events, epsilon=plain.epsilon)
        tight = curve.exceedance(at)
        about = "about " if tight < chance and not curve.certain else ""
        rise = times(factor(at)) if at <= LARGE else "any number"
        return (
            f"In such a list, the odds of a true fact about one person rise by a factor of more than {rise} with"
            f" probability at most {about}{three_digits(min(chance, tight))}."
        )

    def _caveats(self) -> list[str]:
        cap = f"ε = {brief(self.cap_epsilon)}" + (f" and δ = {brief(self.cap_delta)}" if self.cap_delta else "")
        lines = [f"However further queries are chosen, their total stays within the cap: {cap}."]
        if self.by_block:
            lines = [
                "However further queries are chosen, the total of those that read one block stays within the cap on it:"
                f" {cap} in each block. All blocks together can cost more, and new blocks bring new budget."
            ]
        if self.written_off:
            lines.append("Part of the ledger was lost and written off; queries recorded there are not counted here.")
        return lines

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        curve, plain, total = self.tradeoff(), self.plain(), self.total
        return {
            "who": self.who,
            "dataset": self.dataset,
            "charges": self.count,
            "epsilon": None if plain is None else str(plain.epsilon),
            "delta": str(total.delta if plain is None else plain.delta),
            "certain": curve.certain,
            "guess": float(curve.guess()),
            "bits": float(curve.bits()),
            "tradeoff": [[float(level), float(power)] for level, power in curve.curve()],
            "sentences": list(self.sentences),
        }


def _sum(plain: Meaning) -> str:
    delta = f" and δ = {brief(plain.delta)}" if plain.delta else ""
    return f"However the queries were chosen, their total privacy cost is ε = {brief(plain.epsilon)}{delta}."


def query_history(
    snapshot: Snapshot, policy: Policy, dataset: str, *, analyst: str | None = None, group: str | None = None
) -> QueryHistory:
    """Read the charges of an analyst, of a group (its current members) or, by default, of everybody from a ledger."""
    if dataset not in policy.datasets:
        raise unknown_dataset(dataset, tuple(policy.datasets))
    caps_of_dataset = policy.datasets[dataset]
    cap = lifetime = lifetime_of(caps_of_dataset) or basis(caps_of_dataset)
    who, members = "everybody", None
    if analyst is not None:
        if analyst not in policy.analysts:
            raise ParameterError(
                "HB121", f"There is no analyst named {analyst!r}.", "Use an analyst listed in hubbub.yaml."
            )
        (cap,) = [cap for cap in policy.caps(analyst, dataset) if cap.scope == "analyst"]
        who, members = analyst, frozenset({analyst})
    elif group is not None:
        if group not in policy.groups:
            raise ParameterError("HB121", f"There is no group named {group!r}.", "Use a group listed in hubbub.yaml.")
        names, caps = policy.groups[group]
        cap = caps.get(dataset, lifetime)
        who, members = f"the group {group}", frozenset(names)
    charges = _charges(snapshot.entries(EntryFilter(kind="charge", analyst=analyst, dataset=dataset)), members)
    lost = any(not closed_by(json.loads(entry.facts)) for entry in snapshot.entries(EntryFilter(kind="forfeit")))
    return QueryHistory(who, dataset, charges, lost, cap.budget.epsilon, cap.budget.delta, cap.block is not None)


def _charges(entries: Iterable[Entry], members: frozenset[str] | None) -> Counter[str]:
    return Counter(entry.facts for entry in entries if members is None or entry.analyst in members)
