"""What the owner declares about a table: columns with their facts, the unit of protection, who may be told what.

A declared fact is made true when the table is read (values are clamped, keys outside the list fall into `other` or
vanish), so that everything after the scan may lean on it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime
from enum import Enum
from fractions import Fraction
from typing import Any, Self

from hubbub.core import wire
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError

Value = bool | int | Fraction | str | date | datetime
"""A public value in a query or a declaration; a real number is exact."""


class Kind(Enum):
    """The types that the SQL path knows. Every engine's type is read as one of these, or the column is disabled."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    REAL = "real"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"

    @property
    def numeric(self) -> bool:
        """Whether sums make sense."""
        return self in (Kind.INTEGER, Kind.REAL)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Every value that is not NULL lies in [low, high]."""

    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError("bounds must rise")


@dataclass(frozen=True, slots=True)
class Column:
    """One column as declared.

    bounds   a numeric value is clamped into them; NaN becomes NULL before, ±inf is clamped like any large number
             (of a date they are days since 1970-01-01, of a timestamp microseconds since then)
    step     the grid on which a real is summed; None: hubbub chooses it from the bounds
    values   the finite list of keys, public by declaration; the order is the order of output
    other    where values outside the list go; None: such rows vanish from groups by this column
    hidden   cannot be named in a query at all
    """

    name: str
    kind: Kind
    bounds: Bounds | None = None
    step: Fraction | None = None
    values: tuple[Value, ...] | None = None
    other: Value | None = None
    hidden: bool = False

    def form(self) -> wire.Form:
        """Give it for JSON; exact numbers as text."""
        bounds = None if self.bounds is None else [str(self.bounds.low), str(self.bounds.high)]
        return {
            "name": self.name,
            "kind": self.kind.value,
            "bounds": bounds,
            "step": wire.maybe(self.step),
            "values": None if self.values is None else [wire.value(each) for each in self.values],
            "other": None if self.other is None else wire.value(self.other),
            "hidden": self.hidden,
        }

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> Self:
        """Read what `form` gives."""
        bounds, values, other = form["bounds"], form["values"], form["other"]
        return cls(
            name=form["name"],
            kind=Kind(form["kind"]),
            bounds=None if bounds is None else Bounds(Fraction(bounds[0]), Fraction(bounds[1])),
            step=wire.fraction(form, "step"),
            values=None if values is None else tuple(map(wire.read_value, values)),
            other=None if other is None else wire.read_value(other),
            hidden=form["hidden"],
        )


@dataclass(frozen=True, slots=True, repr=False)
class Unit:
    """Who is protected: the owner of `column`'s value, or each row by itself where column is None.

    groups   at most so many groups of a query take a contribution from one unit
    rows     at most so many rows of one unit count in each group
    entity   whose the values of the column are, in the owner's word; tables whose units share a declared entity can be
             matched on the unit. Without one ("") the units of this table are matched with no other table's
    """

    column: str | None
    groups: int = 1
    rows: int = 1
    entity: str = ""

    def __repr__(self) -> str:
        # stands in the replay keys of ledgers, where the column's name was the entity that nobody had declared
        entity = self.entity or self.column or ""
        return f"Unit(column={self.column!r}, groups={self.groups!r}, rows={self.rows!r}, entity={entity!r})"


@dataclass(frozen=True, slots=True)
class Table:
    """A table that queries may name. A public table has no unit; a private one always has.

    size, repeats,   of a public table, measured at loading: how many rows there are, how many at most share one value
    lengths          of a column, and how many characters the longest text of a column has. They bound what a join with
                     it makes of one row, and the work on its columns; they are no part of its form.
    """

    name: str
    columns: tuple[Column, ...]
    unit: Unit | None
    relation: Relation = Relation.ADD_REMOVE
    unique: tuple[str, ...] | None = None  #: public: columns that no two rows share, checked at loading
    arrivals: bool = False  #: private: whether the number of arrivals in its streams is public
    size: int | None = field(default=None, repr=False, compare=False)
    repeats: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)
    lengths: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)

    @property
    def public(self) -> bool:
        """Whether anybody may see it."""
        return self.unit is None

    def column(self, name: str) -> Column | None:
        """Find a column that may be named in a query, by its exact name."""
        return next((c for c in self.columns if c.name == name and not c.hidden), None)

    def shown(self) -> Self:
        """Leave out what is hidden from analysts; the unit's column stays, since it is named anyway."""
        unit = None if self.unit is None else self.unit.column
        return replace(self, columns=tuple(each for each in self.columns if not each.hidden or each.name == unit))

    def form(self) -> wire.Form:
        """Give it for JSON: everything that is declared, and nothing else."""
        return {
            "name": self.name,
            "columns": [column.form() for column in self.columns],
            "unit": None if self.unit is None else asdict(self.unit),
            "relation": self.relation.value,
            "unique": None if self.unique is None else list(self.unique),
            "arrivals": "public" if self.arrivals else "hidden",
        }

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> Self:
        """Read what `form` gives; what else stands beside it is left alone."""
        return cls(
            name=form["name"],
            columns=tuple(map(Column.read, form["columns"])),
            unit=None if form["unit"] is None else Unit(**form["unit"]),
            relation=Relation(form["relation"]),
            unique=None if form["unique"] is None else tuple(form["unique"]),
            arrivals=form.get("arrivals") == "public",
        )


def unknown(name: str, known: tuple[str, ...]) -> ParameterError:
    """Make the refusal of a dataset that is not there, or not for who asks: the same words for both."""
    return ParameterError("HB120", f"there is no dataset called {name!r}.", f"There are: {', '.join(known) or 'none'}.")
