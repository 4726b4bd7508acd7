"""What is spent and what is left: plain facts, for whoever asks, here or over a wire."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any, Literal, Self

from hubbub.core.numbers import brief, round_down
from hubbub.core.wire import Json, optional_fraction, optional_text

CapScope = Literal["query", "analyst", "group", "dataset"]
CapPeriod = Literal["day", "month"]
CapDisplay = Literal["rounded", "exact", "hidden"]

#: Beyond this, "about N more" says nothing that a person needs.
MANY = 1_000_000


@dataclass(frozen=True, slots=True)
class CapState:
    """One cap: what it allows, what is spent (None where its δ is too small to say), the largest ε still admitted.

    scope   for one query, one analyst, a group of them, or everybody; `name` says which
    per     the calendar period after which it is renewed, if it is
    """

    scope: CapScope
    name: str
    per: CapPeriod | None
    epsilon: Fraction
    delta: Fraction
    spent: Fraction | None
    left: Fraction

    def to_json(self) -> Json:
        """Give it for JSON; numbers are exact, as text."""
        return {
            "scope": self.scope,
            "name": self.name,
            "per": self.per,
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "spent": optional_text(self.spent),
            "left": str(self.left),
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Read what `form` gives."""
        epsilon, delta, left = (Fraction(form[name]) for name in ("epsilon", "delta", "left"))
        return cls(form["scope"], form["name"], form["per"], epsilon, delta, optional_fraction(form, "spent"), left)


@dataclass(frozen=True, slots=True)
class BudgetOverview:
    """What one analyst has on one dataset: every cap, and how many more like the last query would pass them all.

    Of caps that others spend from too, `spent` is rounded up and `left` down, unless the owner shows them exactly. Caps
    that the owner hides are not listed.
    """

    analyst: str
    dataset: str
    caps: tuple[CapState, ...]
    largest: Fraction
    last: str | None
    more: int | None

    def text(self) -> str:
        """Say it in words."""
        lines = [f"{self.analyst} on {self.dataset}: up to ε={round_down(self.largest)} in one more query"]
        for state in self.caps:
            spent = "an unknown part" if state.spent is None else brief(state.spent)
            delta = f", δ={brief(state.delta)}" if state.delta else ""
            where = self.describe_cap(state)
            if state.scope == "query":
                lines.append(f"  at most ε={brief(state.epsilon)} {where}")
            else:
                lines.append(
                    f"  spent {spent} of ε={brief(state.epsilon)}{delta}, {round_down(state.left)} left, {where}"
                )
        if not any(state.scope == "dataset" for state in self.caps):
            lines.append("  what is left for everybody is not shown: a query may be refused before this is spent")
        if self.more is not None:
            count = f"more than {MANY}" if self.more >= MANY else f"about {self.more}"
            lines.append(f"  {count} more queries like your last: {printable(self.last or '')}")
        return "\n".join(lines)

    def describe_cap(self, state: CapState) -> str:
        """Name one of the caps as a person would."""
        return describe_cap(state.scope, state.name, state.per, analyst=self.analyst, dataset=self.dataset)

    def to_json(self) -> Json:
        """Give it for JSON; numbers are exact, as text."""
        return {
            "analyst": self.analyst,
            "dataset": self.dataset,
            "largest_epsilon": str(self.largest),
            "last_query": self.last,
            "more_like_last": self.more,
            "caps": [state.to_json() for state in self.caps],
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Read what `form` gives."""
        return cls(
            form["analyst"],
            form["dataset"],
            tuple(map(CapState.from_json, form["caps"])),
            Fraction(form["largest_epsilon"]),
            form["last_query"],
            form["more_like_last"],
        )


@dataclass(frozen=True, slots=True)
class PastCharge:
    """One charge of the past, by its number in the ledger.

    epsilon    what was paid; None of Gaussian noise whose answer was never recorded: its loss is a curve
    released   whether there is an answer, which can be had again at no cost
    """

    id: int
    time: datetime
    analyst: str
    dataset: str
    query: str
    epsilon: Fraction | None
    delta: Fraction
    released: bool

    def to_json(self) -> Json:
        """Give it for JSON."""
        return {
            "id": self.id,
            "time": self.time.isoformat(),
            "analyst": self.analyst,
            "dataset": self.dataset,
            "query": self.query,
            "epsilon": optional_text(self.epsilon),
            "delta": str(self.delta),
            "released": self.released,
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Read what `form` gives."""
        return cls(
            form["id"],
            datetime.fromisoformat(form["time"]),
            form["analyst"],
            form["dataset"],
            form["query"],
            optional_fraction(form, "epsilon"),
            Fraction(form["delta"]),
            form["released"],
        )


def describe_cap(scope: CapScope, name: str, per: CapPeriod | None, *, analyst: str, dataset: str) -> str:
    """Name a cap as a person would.

    >>> describe_cap("dataset", "visits", "day", analyst="ana", dataset="visits")
    'for everybody on visits this day'
    """
    match scope:
        case "query":
            return f"for one query on {dataset}"
        case "analyst":
            return f"for {analyst} on {dataset}"
        case "group":
            return f"for the group {name} on {dataset}"
        case "dataset":
            return f"for everybody on {dataset}" + (f" this {per}" if per else "")


def printable(text: str) -> str:
    r"""Make text safe for a terminal: analysts write queries, and a privacy officer reads them.

    >>> printable("count\x1b[2J\n")
    'count\\x1b[2J\\n'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
