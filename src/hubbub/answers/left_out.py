"""What the bounds of an answer leave out: excess rows of a privacy unit, and values outside clamping bounds.

Everything here comes from the plan of a query and from released profiles, so stating it reveals nothing.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

from hubbub.core.numbers import readable
from hubbub.core.unit import period_guarantee
from hubbub.core.wire import Json

_FILLS = "Where an argument of LEAST or GREATEST is NULL, the constant counts; IS NOT NULL leaves such rows out."


@dataclass(frozen=True, slots=True)
class Share:
    """An estimated share between 0 and 1, with the ends of its 95% confidence interval."""

    value: float
    low: float
    high: float

    def text(self) -> str:
        """Format the share in percent, with its margin of error.

        >>> Share(0.503, 0.48, 0.526).text(), Share(0.02, 0.0, 0.09).text(), Share(0.0, 0.0, 0.004).text()
        ('about 50% (±2.3%)', 'about 2.0% (0% to 9.0%)', 'at most 0.4%')
        """
        below, above = self.value - self.low, self.high - self.value
        if self.high < 1e-6:
            return "none"
        if self.high == self.low:
            return _percent(self.value)
        if self.value <= 0:
            return f"at most {_percent(self.high)}"
        if abs(above - below) <= (above + below) / 5 or max(above, below) < 0.005:
            return f"about {_percent(self.value)} (±{_percent(max(above, below))})"
        return f"about {_percent(self.value)} ({_percent(self.low)} to {_percent(self.high)})"


@dataclass(frozen=True, slots=True)
class Clamp:
    """A column whose values are clamped to declared bounds; `share` of the values lie outside, if it is known."""

    column: str
    low: str
    high: str
    share: Share | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """The release that a share comes from.

    charge   the number of its charge in the ledger; 0 for the answer itself (bounds that the query found)
    older    whether it was made from another version of the data, or from other blocks
    level    the share is about units with at most this many rows; None: about all units
    above    the most units that can have more rows, at 95% confidence
    """

    charge: int
    older: bool = False
    level: int | None = None
    above: int = 0


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What was bounded, and what share of the rows that leaves out, if it is known.

    dataset   the private tables of the answer
    unit      the privacy ID column; None if each row is a unit
    groups    how many groups of a unit count at most; None: all
    rows      how many rows of a unit count in each group at most; None: all
    rows_total  how many rows of a unit count in all groups together at most; None: as many as groups and rows allow
    total     how much of a sum one unit adds at most, if the query chose that; None: no such bound
    maximum   the public maximum of `rows`, if the query chose its bound itself (`rows: auto`)
    counts    "rows", or "units" where each unit counts once in a group
    by        what the groups are: "" for the whole answer, a declared column; None: anything else
    filtered  whether conditions select some of the rows: the share is then that of the whole dataset
    clamped   the columns that are clamped
    share     the share of the rows (of a unit's groups where `counts` is "units") that is left out, if it is known
    evidence  where the shares come from
    joined    how many rows of a unit some table keeps before it is joined, if nobody declared a bound
    owners    the privacy ID columns, if rows have two owners: the bound is for each owner in each group
    per_node  what `rows` bounds for each node of a graph, "triangles" or "edges"; empty for anything else
    unlisted  the columns whose values outside a declared list are read as NULL, where that can matter
    ungrouped  the keys whose values outside a declared list are in no group
    null_keys  other columns by which a key may be NULL, which is in no group
    fills_null  whether LEAST or GREATEST may take a constant for NULL
    """

    dataset: str
    unit: str | None = None
    groups: int | None = None
    rows: int | None = None
    total: float | None = None
    maximum: int | None = None
    counts: Literal["rows", "units"] = "rows"
    by: str | None = None
    filtered: bool = False
    clamped: tuple[Clamp, ...] = ()
    share: Share | None = None
    evidence: Evidence | None = None
    joined: int | None = None
    rows_total: int | None = None
    owners: tuple[str, ...] = ()
    per_node: str = ""
    unlisted: tuple[str, ...] = ()
    ungrouped: tuple[str, ...] = ()
    null_keys: tuple[str, ...] = ()
    fills_null: bool = False

    @property
    def bounded(self) -> bool:
        """Whether some rows or groups of a unit may not count."""
        return self.groups is not None or self.rows is not None or self.maximum is not None

    def sentence(self) -> str:
        """State everything in plain words."""
        parts = [self._bounds(), self._share() if self.bounded else "", self._joined(), *map(self._clamp, self.clamped)]
        if self.ungrouped:
            parts.append(f"Rows in which {_any_of(self.ungrouped)} is NULL or not a declared value are in no group.")
        if self.null_keys:
            parts.append(f"Rows in which {_any_of(self.null_keys)} is NULL are in no group.")
        if self.unlisted:
            parts.append(f"Values of {' and '.join(self.unlisted)} that are not declared are read as NULL.")
        if self.fills_null:
            parts.append(_FILLS)
        if self.unit is not None:
            named = " or ".join(self.owners) or self.unit
            # a unit that is no column: found through keys (customers.id), or a period (user per day)
            derived = "." in self.unit or bool(period_guarantee(self.unit))
            which = f"without {named}" if derived else f"where {named} is NULL"
            parts.append(f"Rows {which} are in no answer.")
        if self.evidence is not None and self.evidence.older and (self.share or any(c.share for c in self.clamped)):
            parts.append("The profile is of another version or part of the data.")
        return " ".join(part for part in parts if part)

    def to_json(self) -> Json:
        """Return it as JSON values; what has no effect is omitted."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}  # asdict copies every value
        fields["clamped"] = [asdict(each) for each in self.clamped]
        fields |= {name: asdict(each) for name, each in (("share", self.share), ("evidence", self.evidence)) if each}
        return {name: value for name, value in fields.items() if value not in (None, False, [], (), "") or name == "by"}

    def shown(self) -> Json:
        """Return it as JSON values together with the sentence."""
        return self.to_json() | {"text": self.sentence()}

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`; ignore other fields, which a later version may write."""
        known = {name: form[name] for name in cls.__dataclass_fields__ if name in form}
        made = cls(**known)
        return replace(
            made,
            clamped=tuple(
                Clamp(each["column"], each["low"], each["high"], _read_share(each.get("share")))
                for each in form.get("clamped", ())
            ),
            share=_read_share(form.get("share")),
            owners=tuple(form.get("owners", ())),
            unlisted=tuple(form.get("unlisted", ())),
            ungrouped=tuple(form.get("ungrouped", ())),
            null_keys=tuple(form.get("null_keys", ())),
            evidence=None if form.get("evidence") is None else Evidence(**form["evidence"]),
        )

    @classmethod
    def from_receipt(cls, receipt: Mapping[str, Any]) -> Self | None:
        """Read what a receipt states; older receipts state the contribution bounds only."""
        if "left_out" in receipt:
            return cls.from_json(receipt["left_out"])
        data, bounds = receipt.get("data"), receipt.get("bounds")
        if not data:
            return None
        names = " and ".join(each["dataset"] for each in data)
        if not bounds or "auto" in bounds or data[0]["unit"] == "row":
            return cls(names)
        return cls(names, data[0]["unit"], bounds["groups"], bounds["rows"])

    def _bounds(self) -> str:
        if self.per_node:
            return self._nodes()
        if self.unit is None:
            return "" if self.clamped else "The answer counts every row."
        if not self.bounded:
            return f"Each {self.unit} counts once." if self.counts == "units" else "No rows are left out."
        if self.owners:
            return self._owners()
        if self.total is not None:
            return f"Each {self.unit} adds at most {self.total:,.6g} to the sum, a bound that the query chose."
        if self.maximum is not None and self.groups is None and self.rows is None:
            most = _plural(self.maximum, "row")
            typical = "; errors are estimated for a hundredth of that" if self.maximum >= 100 else ""
            return f"The query finds how much of each {self.unit} counts, up to {most}{typical}."
        groups = "" if self.groups is None else _plural(self.groups, "group")
        rows = "" if self.rows is None else f"at most {_plural(self.rows, 'row')}"
        if groups and rows:
            text = f"counts in at most {groups}, with {rows} in each"
        else:
            text = f"counts in at most {groups}" if groups else f"counts with {rows}" + (" a group" if self.by else "")
        if self.rows_total is not None:
            text += f", and at most {_plural(self.rows_total, 'row')} in all groups together"
        chosen = f", a bound that the query chose (at most {self.maximum:,})" if self.maximum is not None else ""
        return f"Each {self.unit} {text}{chosen}."

    def _nodes(self) -> str:
        if self.rows is None:
            return (
                f"The query chooses how many {self.per_node} of each node count. What that leaves out will not be "
                "known, so the interval has no upper end."
            )
        return (
            f"Of each node at most {self.rows:,} {self.per_node} count, a bound that the query chose. What is beyond "
            "it is left out and not known: the true number can be larger by any amount, so the interval has no upper "
            "end."
        )

    def _owners(self) -> str:
        whose = " and ".join(f"each {column}" for column in self.owners)
        if self.rows is None and self.total is None:
            return (
                f"The query chooses how much of {whose} counts in a group; errors are estimated for a hundredth of the "
                "maximum. The true value can be larger than the interval, never smaller."
            )
        most = _plural(self.rows, "row") if self.rows is not None else f"{self.total:,.6g}"
        return (
            f"Of {whose}, at most {most} counts in a group, a bound that the query chose. What is beyond it is left "
            "out and not known: the true value can be larger by any amount, so intervals have no upper end."
        )

    def _share(self) -> str:
        if self.owners or self.per_node:
            return ""
        what = f"groups that units of {self.dataset} are in" if self.counts == "units" else f"rows of {self.dataset}"
        if self.maximum is not None and self.share is None:
            return ""
        if self.share is None and self.evidence is None:
            first = self.dataset.partition(" and ")[0]
            covers = [each is None or each >= (self.rows_total or 0) for each in (self.groups, self.rows)]
            known = self.by is not None and (self.rows_total is None or all(covers))
            remedy = "estimates it" if known else "shows how many rows its units have"
            return f"What share of the {what} this leaves out is not known; `hubbub profile {first}` {remedy}."
        if self.share is None:
            return f"What share of the {what} this leaves out is not known: the profile does not cover this query."
        proof = self.evidence or Evidence(0)
        if not proof.charge:
            whole = "the sum" if self.total is not None else "the groups" if self.counts == "units" else "the rows"
            if proof.above and proof.level is not None:
                most = f"the maximum of {_plural(proof.level, 'row')}"
                return f"About {proof.above:,} units have more than {most}: how much is left out is not known."
            return f"This leaves out {self.share.text()} of {whole}, as far as noise lets it see."
        whose, beyond = "", ""
        if proof.level is not None and self.counts == "rows":
            whose = f" of units with {'1 row' if proof.level == 1 else f'up to {proof.level:,} rows'}"
            beyond = f"; at most {proof.above:,} {'unit has' if proof.above == 1 else 'units have'} more"
        text = (
            f"This leaves out {self.share.text()} of the {what}{whose}, according to its profile (charge"
            f" {proof.charge}){beyond}."
        )
        if self.filtered:
            text += " That is the share over the whole dataset; among the selected rows it may differ."
        return text

    def _joined(self) -> str:
        if self.joined is None:
            return ""
        return (
            f"Before the join, a table keeps at most {_plural(self.joined, 'row')} of each {self.unit}. "
            "What that leaves out is not known, and no interval allows for it."
        )

    def _clamp(self, clamp: Clamp) -> str:
        text = f"{clamp.column} is clamped to {_readable(clamp.low)} to {_readable(clamp.high)}"
        if clamp.share is None:
            return f"{text}."
        whose = "" if self.unit is None else f" (one row of each {self.unit})"
        return f"{text}; {clamp.share.text()} of its values{whose} are outside."


def _readable(number: str) -> str:
    """Format a stored bound, which may be a date, for people."""
    try:
        return readable(float(number))
    except ValueError:
        return number


def _any_of(columns: tuple[str, ...]) -> str:
    return " or ".join(columns)


def _percent(share: float) -> str:
    """Format a share in percent with two significant digits, or whole percents from 10 on."""
    value = 100 * share
    return f"{value:.0f}%" if value >= 10 or value == 0 else f"{value:.2g}%" if value < 1 else f"{value:.1f}%"


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _read_share(form: Mapping[str, Any] | None) -> Share | None:
    return None if form is None else Share(form["value"], form["low"], form["high"])
