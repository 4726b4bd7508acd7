"""Budget overviews and past charges, as shown to analysts and sent to clients.

Tested in tests/accounting/test_status.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any, Literal, Self

from hubbub.core.numbers import brief, round_down
from hubbub.core.wire import Json, optional_fraction, optional_text

CapScope = Literal["query", "analyst", "share", "project", "rest", "group", "dataset"]
CapPeriod = Literal["day", "month"]
CapDisplay = Literal["rounded", "exact", "hidden"]

#: Above this, the number of further queries is not shown exactly.
MANY = 1_000_000
#: Why the spent amount is not the sum of the charges.
COMPOSED = (
    "Spent is what all charges cost together. With Gaussian noise or many small charges this is not the sum of their ε:"
    " the first Gaussian charge counts a little more than its ε, later ones count less."
)
#: Why a query may cost more than what remains.
LARGER = "A query may cost more than what remains, because it counts less than its ε together with earlier charges."


@dataclass(frozen=True, slots=True, repr=False)
class CapState:
    """One cap: its limit, the amount spent (None if its δ is too small to tell), and the rest of the limit.

    scope     one query, one analyst, a project, a group, or everybody; `name` identifies it. A `share` is the analyst's
              fair share of a shared cap, `rest` what running projects leave to the others of a group
    per       the calendar period after which the cap is renewed, if any
    composed  whether the charges together cost something else than the sum of their ε
    block     the block that the cap is about; empty if it is about all charges
    """

    scope: CapScope
    name: str
    per: CapPeriod | None
    epsilon: Fraction
    delta: Fraction
    spent: Fraction | None
    left: Fraction
    composed: bool = False
    block: str = ""

    def to_json(self) -> Json:
        """Return it as JSON values; numbers are exact strings."""
        return {
            "scope": self.scope,
            "name": self.name,
            "per": self.per,
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "spent": optional_text(self.spent),
            "left": str(self.left),
            "composed": self.composed,
        } | ({"block": self.block} if self.block else {})

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        epsilon, delta, left = (Fraction(form[name]) for name in ("epsilon", "delta", "left"))
        spent, composed = optional_fraction(form, "spent"), bool(form.get("composed", False))
        block = str(form.get("block", ""))
        return cls(form["scope"], form["name"], form["per"], epsilon, delta, spent, left, composed, block)

    def __repr__(self) -> str:
        return f"<{self.scope} {self.name}: {self.text()}>"

    def text(self) -> str:
        """Return the amounts as text."""
        delta = f", δ={brief(self.delta)}" if self.delta else ""
        if self.scope == "query":
            return f"at most ε={brief(self.epsilon)}"
        spent = "an unknown part" if self.spent is None else brief(self.spent)
        return f"spent {spent} of ε={brief(self.epsilon)}{delta}, {round_down(self.left)} remaining"


@dataclass(frozen=True, slots=True)
class BlockState:
    """The budget of one analyst on one block of a dataset.

    spent  what the analyst spent on it; None if a δ is too small to tell
    left   the largest ε of one more query on this block alone
    more   how many more queries like the analyst's last one fit, on this block alone; None if it is not shown
    """

    name: str
    spent: Fraction | None
    left: Fraction
    more: int | None
    closed: bool = False

    def text(self) -> str:
        """Return it in one line."""
        if self.closed:
            return f"{self.name}: closed"
        count = "" if self.more is None else f", {count_text(self.more)} more queries like your last one"
        return f"{self.name}: up to ε={round_down(self.left)} for one query{count}"

    def to_json(self) -> Json:
        """Return it as JSON values; numbers are exact strings."""
        return {
            "name": self.name,
            "spent": optional_text(self.spent),
            "left": str(self.left),
            "more_like_last": self.more,
            "closed": self.closed,
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        spent = optional_fraction(form, "spent")
        return cls(form["name"], spent, Fraction(form["left"]), form["more_like_last"], form["closed"])


@dataclass(frozen=True, slots=True, repr=False)
class BudgetOverview:
    """The budget of one analyst on one dataset: every cap, and how many more queries like the last one fit.

    Of a dataset with blocks, `caps` and `largest` are about the newest one, `more` about those that the last query was
    charged to, and `blocks` lists all of them.

    For shared caps, `spent` is rounded up and `left` down, unless the owner shows them exactly. Caps that the owner
    hides are not listed.
    """

    analyst: str
    dataset: str
    caps: tuple[CapState, ...]
    largest: Fraction
    last: str | None
    more: int | None
    blocks: tuple[BlockState, ...] = ()

    def text(self) -> str:
        """Return the overview as text."""
        lines = [f"{self.analyst} on {self.dataset}: up to ε={round_down(self.largest)} for {self.next_query}"]
        for state in self.caps:
            comma = "" if state.scope == "query" else ","
            lines.append(f"  {state.text()}{comma} {self.describe_cap(state)}")
        if not any(state.scope == "dataset" for state in self.caps):
            lines.append("  the shared cap is hidden: a query may be rejected before this budget is spent")
        if self.more is not None:
            lines.append(f"  {count_text(self.more)} more queries like your last one: {printable(self.last or '')}")
        lines += [f"  {block.text()}" for block in self.blocks]
        return "\n".join(lines + [f"  {note}" for note in self.notes()])

    def __repr__(self) -> str:
        return self.text()

    @property
    def next_query(self) -> str:
        """What `largest` is for, in words."""
        return f"a query that reads {self.blocks[-1].name} alone" if self.blocks else "the next query"

    def notes(self) -> list[str]:
        """Explain figures that do not add up at first sight; empty if they do."""
        notes = [COMPOSED] if any(state.composed for state in self.caps) else []
        more = any(state.scope == "analyst" and self.largest > state.left for state in self.caps)
        return [*notes, LARGER] if more else notes

    def describe_cap(self, state: CapState) -> str:
        """Describe one of the caps in words."""
        described = describe_cap(state.scope, state.name, state.per, analyst=self.analyst, dataset=self.dataset)
        return f"{described} in {state.block}" if state.block else described

    def to_json(self) -> Json:
        """Return it as JSON values; numbers are exact strings."""
        return {
            "analyst": self.analyst,
            "dataset": self.dataset,
            "largest_epsilon": str(self.largest),
            "last_query": self.last,
            "more_like_last": self.more,
            "caps": [state.to_json() for state in self.caps],
        } | ({"blocks": [block.to_json() for block in self.blocks]} if self.blocks else {})

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(
            form["analyst"],
            form["dataset"],
            tuple(map(CapState.from_json, form["caps"])),
            Fraction(form["largest_epsilon"]),
            form["last_query"],
            form["more_like_last"],
            tuple(map(BlockState.from_json, form.get("blocks", ()))),
        )


@dataclass(frozen=True, slots=True, repr=False)
class PastCharge:
    """A past charge, identified by its number in the ledger.

    epsilon, delta  its privacy cost; for Gaussian noise whose answer was never recorded, ε at the dataset's δ
    released        whether there is an answer, which can be repeated for free
    review          of an answer that has to be approved: "waiting", "approved" or "declined"; otherwise empty
    """

    id: int
    time: datetime
    analyst: str
    dataset: str
    query: str
    epsilon: Fraction
    delta: Fraction
    released: bool
    review: str = ""

    def __repr__(self) -> str:
        cost = f"ε={brief(self.epsilon)}" + (f", δ={brief(self.delta)}" if self.delta else "")
        answer = self.answer()
        answer = f" ({answer})" if answer else ""
        return f"<{self.id} {self.time:%Y-%m-%d %H:%M} {self.dataset}: {cost}{answer}: {printable(self.query)}>"

    def to_json(self) -> Json:
        """Return it as JSON values."""
        return {
            "id": self.id,
            "time": self.time.isoformat(),
            "analyst": self.analyst,
            "dataset": self.dataset,
            "query": self.query,
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "released": self.released,
        } | ({"review": self.review} if self.review else {})

    def answer(self) -> str:
        """Say why there is nothing to read; empty if there is an answer."""
        if self.review == "waiting":
            return "waits for review"
        return "declined" if self.review == "declined" else "" if self.released else "no answer"

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(
            form["id"],
            datetime.fromisoformat(form["time"]),
            form["analyst"],
            form["dataset"],
            form["query"],
            Fraction(form["epsilon"]),
            Fraction(form["delta"]),
            form["released"],
            form.get("review", ""),
        )


def describe_cap(scope: CapScope, name: str, per: CapPeriod | None, *, analyst: str, dataset: str) -> str:
    """Describe a cap in words.

    >>> describe_cap("dataset", "visits", "day", analyst="ana", dataset="visits")
    'for everybody on visits today'
    """
    match scope:
        case "query":
            return f"for one query on {dataset}"
        case "analyst":
            return f"for {analyst} on {dataset}"
        case "group":
            return f"for the group {name} on {dataset}"
        case "share":
            return f"for {analyst}, the fair share of {name} on {dataset}"
        case "project":
            return f"for the project {name} on {dataset}"
        case "rest":
            return f"for the group {name} on {dataset}, outside of its projects"
        case "dataset":
            return f"for everybody on {dataset}" + {"day": " today", "month": " this month", None: ""}[per]


def count_text(count: int) -> str:
    """Write a number of further queries.

    >>> count_text(12), count_text(MANY)
    ('about 12', 'more than 1000000')
    """
    return f"more than {MANY}" if count >= MANY else f"about {count}"


def printable(text: str) -> str:
    r"""Escape control characters, because others read the queries that analysts write in a terminal.

    >>> printable("count\x1b[2J\n")
    'count\\x1b[2J\\n'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
