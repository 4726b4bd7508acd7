"""Declared schema of a table: columns, clamping bounds, keys and the privacy unit.

Declarations are enforced when a table is read (values are clamped; keys outside the list become `other` or are
dropped), so that everything after the scan can rely on them.

Tested in tests/core/test_wire.py.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime, timedelta
from enum import Enum
from fractions import Fraction
from typing import Any, Self

from hubbub.core import wire
from hubbub.core.blocks import Blocks, BlockSet
from hubbub.core.disclosure import NO_RULE, DisclosureRule
from hubbub.core.numbers import readable
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError

Value = bool | int | Fraction | str | date | datetime
"""A public value in a query or a declaration; real numbers are exact."""


class Kind(Enum):
    """Column types. Every type of an engine maps to one of these, or the column is disabled."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    REAL = "real"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"

    @property
    def numeric(self) -> bool:
        """Whether values can be summed."""
        return self in (Kind.INTEGER, Kind.REAL)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Clamping bounds: every value that is not NULL lies in [low, high]."""

    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError("the lower bound must not exceed the upper bound")


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column.

    bounds   clamping bounds of a numeric column; NaN becomes NULL first, ±inf is clamped like any large number
             (for a date in days since 1970-01-01, for a timestamp in microseconds since then)
    step     the grid on which a real column is summed; None: derived from the bounds
    values   the public list of group keys, in output order
    other    the key for values outside the list; None: such rows are dropped when grouping by this column
    hidden   queries cannot reference the column
    nullable NULL is a group of its own when grouping by this column (and unlisted values are read as NULL)
    auto     `bounds` are a public maximum, and each query finds closer ones privately
    required no value is NULL, so that counts of the column are counts of rows
    """

    name: str
    kind: Kind
    bounds: Bounds | None = None
    step: Fraction | None = None
    values: tuple[Value, ...] | None = None
    other: Value | None = None
    hidden: bool = False
    nullable: bool = False
    auto: bool = False
    required: bool = False

    @property
    def clamping(self) -> str:
        """How values are clamped, as a phrase; empty if they are not."""
        return f"clamped to {self.range_text}" if self.bounds is not None and not self.auto else self.range_text

    @property
    def range_text(self) -> str:
        """The clamping bounds as people write them, in the unit of the column; empty if there are none."""
        if self.bounds is None:
            return ""
        if self.auto:
            return "bounds found by each query"
        return " to ".join(map(self.bound_text, (self.bounds.low, self.bounds.high)))

    def bound_text(self, end: Fraction) -> str:
        """Write one number in the range of the column: a date for a column of dates."""
        if self.kind is Kind.DATE:
            return (date(1970, 1, 1) + timedelta(days=int(end))).isoformat()
        if self.kind is Kind.TIMESTAMP:
            return (datetime(1970, 1, 1) + timedelta(microseconds=int(end))).isoformat(" ", "minutes")
        return readable(end)

    def to_json(self) -> wire.Json:
        """Return it as JSON values; exact numbers are strings; flags that were added later are omitted where false."""
        bounds = None if self.bounds is None else [str(self.bounds.low), str(self.bounds.high)]
        form: wire.Json = {
            "name": self.name,
            "kind": self.kind.value,
            "bounds": bounds,
            "step": wire.optional_text(self.step),
            "values": None if self.values is None else [wire.value(key) for key in self.values],
            "other": None if self.other is None else wire.value(self.other),
            "hidden": self.hidden,
        }
        return form | {name: True for name in ("nullable", "auto", "required") if getattr(self, name)}

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        bounds, values, other = form["bounds"], form["values"], form["other"]
        return cls(
            name=form["name"],
            kind=Kind(form["kind"]),
            bounds=None if bounds is None else Bounds(Fraction(bounds[0]), Fraction(bounds[1])),
            step=wire.optional_fraction(form, "step"),
            values=None if values is None else tuple(map(wire.read_value, values)),
            other=None if other is None else wire.read_value(other),
            hidden=form["hidden"],
            nullable=form.get("nullable", False),
            auto=form.get("auto", False),
            required=form.get("required", False),
        )


@dataclass(frozen=True, slots=True)
class Reference:
    """Columns whose values identify a row of another private table by its key; `kinds` are the types of both."""

    columns: tuple[str, ...]
    table: str
    key: tuple[str, ...]
    kinds: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class OwnerPath:
    """How the owner of a row is found: along references, up to the privacy ID column of the last table."""

    steps: tuple[Reference, ...]
    column: str
    kind: Kind

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that the path passes, the nearest first."""
        return tuple(step.table for step in self.steps)

    def to_json(self) -> wire.Json:
        """Return it as JSON values."""
        steps = [
            {
                "columns": list(step.columns),
                "of": step.table,
                "key": list(step.key),
                "kinds": [kind.value for kind in step.kinds],
            }
            for step in self.steps
        ]
        return {"steps": steps, "column": self.column, "kind": self.kind.value}

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        steps = tuple(
            Reference(tuple(step["columns"]), step["of"], tuple(step["key"]), tuple(map(Kind, step["kinds"])))
            for step in form["steps"]
        )
        return cls(steps, form["column"], Kind(form["kind"]))


@dataclass(frozen=True, slots=True)
class Period:
    """One hour, day, week or month of a person: the value of `column`, and the period in which `time` lies."""

    column: str
    kind: Kind
    per: str
    time: str
    time_kind: Kind

    @property
    def name(self) -> str:
        """The name of the unit where the privacy ID column is named, such as `user per day`."""
        return f"{self.column} per {self.per}"

    def to_json(self) -> wire.Json:
        """Return it as JSON values."""
        kinds = {"kind": self.kind.value, "time_kind": self.time_kind.value}
        return {"column": self.column, "per": self.per, "time": self.time} | kinds

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        kinds = {name: Kind(form[name]) for name in ("kind", "time_kind")}
        return cls(**{**form, **kinds})


@dataclass(frozen=True, slots=True, repr=False)
class PrivacyUnit:
    """The privacy unit: all rows with the same value of the privacy ID column, or each row where `column` is None.

    groups   maximum number of groups of a query to which one unit contributes
    rows     maximum number of rows per group that one unit contributes
    entity   what the privacy IDs identify, as named by the data owner; tables with the same declared entity can be
             joined on the privacy ID. Without an entity ("") the table cannot be joined to another private table
    auto     whether each query finds its bounds privately; `groups` and `rows` are then the public maximum of the rows
             of one unit
    rows_total  maximum number of rows that one unit contributes to all groups together; None: groups times rows
    path     where rows belong to the owner of a row of another table: the way there. `column` is then the reference
             that holds the privacy ID, or a name such as `customers.id` that is no column of the table
    period   where one period of a person is protected: which; `column` is then its name, such as `user per day`
    """

    column: str | None
    groups: int = 1
    rows: int = 1
    entity: str = ""
    auto: bool = False
    rows_total: int | None = None
    path: OwnerPath | None = None
    period: Period | None = None

    def __repr__(self) -> str:
        # stored in the replay keys of ledgers, in which an undeclared entity was the name of the column
        entity = self.entity or self.column or ""
        more = ", auto=True" if self.auto else "" if self.rows_total is None else f", rows_total={self.rows_total!r}"
        more += "" if self.path is None else f", path={self.path!r}"
        more += "" if self.period is None else f", period={self.period!r}"
        return f"Unit(column={self.column!r}, groups={self.groups!r}, rows={self.rows!r}, entity={entity!r}{more})"

    def to_json(self) -> wire.Json:
        """Return it as JSON values; what was added later is there only where it is set."""
        form = {name: value for name, value in asdict(self).items() if name not in _LATER or value}
        form |= {} if self.path is None else {"path": self.path.to_json()}
        return form if self.period is None else form | {"period": self.period.to_json()}

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        path, period = form.get("path"), form.get("period")
        parts = {
            "path": None if path is None else OwnerPath.from_json(path),
            "period": None if period is None else Period.from_json(period),
        }
        return cls(**{**form, **parts})


#: Fields of a privacy unit that its JSON form omits where they are not set.
_LATER = ("auto", "rows_total", "path", "period")


@dataclass(frozen=True, slots=True)
class Table:
    """A table that queries can reference. A public table has no privacy unit; a private table always has one.

    size, repeats,   measured when a public table is loaded: its number of rows, the maximum number of rows that share
    lengths          one value of a column, and the length of the longest text of a column. They bound the fan-out and
                     the cost of joins; they are not part of its JSON form. `describe` gives the size of a private table
                     where it is public.
    rows             the rows of a small public table, column by column as queries read them: keys that occur together
    """

    name: str
    columns: tuple[Column, ...]
    unit: PrivacyUnit | None
    relation: Relation = Relation.ADD_REMOVE
    unique: tuple[str, ...] | None = None  #: columns that identify a row, checked whenever the data changes
    arrivals: bool = False  #: private tables: whether the number of arrivals in streams is public
    size: int | None = field(default=None, repr=False, compare=False)
    repeats: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)
    rows: Mapping[str, tuple[Value | None, ...]] = field(default_factory=dict, repr=False, compare=False)
    lengths: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)
    #: private tables: further owners of each row, who are protected as well
    others: tuple[PrivacyUnit, ...] = field(default=(), repr=False)
    #: private tables: the periods that have budgets of their own, and those of them that are read
    blocks: Blocks | None = field(default=None, repr=False)
    #: private tables: roughly how many rows there are, by the owner's public word; decides speed and memory alone
    expected_rows: int | None = field(default=None, repr=False, compare=False)
    #: private tables: rules for numbers that are shown; they decide nothing about noise or cost
    disclosure: DisclosureRule = field(default=NO_RULE, repr=False, compare=False)

    @property
    def owners(self) -> tuple[PrivacyUnit, ...]:
        """All owners of a row; more than one if the promise holds for each of them."""
        return () if self.unit is None else (self.unit, *self.others)

    @property
    def read_blocks(self) -> BlockSet | None:
        """The blocks that are read, and charged; None for a table without blocks."""
        return None if self.blocks is None else self.blocks.read

    @property
    def public(self) -> bool:
        """Whether the table is public."""
        return self.unit is None

    @property
    def public_rows(self) -> bool:
        """Whether the number of rows of a private table is public: neighbors differ in the contents of one row."""
        return self.unit is not None and self.unit.column is None and self.relation is Relation.REPLACE

    @property
    def references(self) -> frozenset[str]:
        """The columns by which rows find their owner or are found by others, visible or not."""
        path = None if self.unit is None else self.unit.path
        period = None if self.unit is None else self.unit.period
        owner = () if period is None else (period.column, period.time)
        time = () if self.blocks is None else (self.blocks.column,)
        return frozenset((self.unique or ()) + owner + time + (path.steps[0].columns if path is not None else ()))

    def owner_kind(self, owner: PrivacyUnit | None = None) -> Kind | None:
        """Return the kind of the privacy ID, or of that of another owner; None if it has no declared type."""
        unit = owner or self.unit
        if unit is not None and unit.path is not None:
            return unit.path.kind
        if unit is not None and unit.period is not None:
            return Kind.TEXT
        return next((c.kind for c in self.columns if unit is not None and c.name == unit.column), None)

    @property
    def privacy_id(self) -> str | None:
        """The privacy ID column, if queries can name it, as in COUNT(DISTINCT patient_id)."""
        name = None if self.unit is None else self.unit.column
        return name if name is not None and self.column(name) is not None else None

    def column(self, name: str) -> Column | None:
        """Return the visible column of this exact name, or None."""
        return next((c for c in self.columns if c.name == name and not c.hidden), None)

    def shown(self) -> Self:
        """Return the table without hidden columns; the privacy ID column stays, because it is named anyway."""
        privacy_ids = {unit.column for unit in self.owners}
        return replace(self, columns=tuple(c for c in self.columns if not c.hidden or c.name in privacy_ids))

    def to_json(self) -> wire.Json:
        """Return the declaration, and nothing else, as JSON values."""
        return {
            "name": self.name,
            "columns": [column.to_json() for column in self.columns],
            "unit": None if self.unit is None else self.unit.to_json(),
            "relation": self.relation.value,
            "unique": None if self.unique is None else list(self.unique),
            "arrivals": "public" if self.arrivals else "hidden",
            **({"others": [unit.to_json() for unit in self.others]} if self.others else {}),
            **({} if self.blocks is None else {"blocks": self.blocks.to_json()}),
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`, and the number of rows if it is given; ignore other keys."""
        return cls(
            name=form["name"],
            columns=tuple(map(Column.from_json, form["columns"])),
            unit=None if form["unit"] is None else PrivacyUnit.from_json(form["unit"]),
            relation=Relation(form["relation"]),
            unique=None if form["unique"] is None else tuple(form["unique"]),
            arrivals=form.get("arrivals") == "public",
            size=form.get("rows"),
            others=tuple(PrivacyUnit.from_json(unit) for unit in form.get("others", ())),
            blocks=None if "blocks" not in form else Blocks.from_json(form["blocks"]),
        )


def unknown_dataset(name: str, known: tuple[str, ...]) -> ParameterError:
    """Return the error for a dataset that does not exist or is not accessible; both have the same text."""
    return ParameterError(
        "HB120", f"There is no dataset named {name!r}.", f"Available datasets: {', '.join(known) or 'none'}."
    )
