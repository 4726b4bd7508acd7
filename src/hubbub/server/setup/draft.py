"""What was chosen so far on the set-up page. It is in memory only; each step replaces its part until the end.

Each step is checked by the same reader of hubbub.yaml as the finished file, with modest values where a later step has
not been taken.

Tested in tests/server/test_setup.py.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from hubbub.config import Config
from hubbub.config.choices import ColumnChoice, TableChoice, Use
from hubbub.config.template import template
from hubbub.core import numbers
from hubbub.core.schema import Kind
from hubbub.engines.base import Field
from hubbub.errors import ConfigError
from hubbub.server import config_editor
from hubbub.server.setup.sources import OfferedTable

STEPS = {
    "data": "Data",
    "people": "People",
    "columns": "Columns",
    "budget": "Budget",
    "analyst": "Analyst",
    "review": "Review",
}
_USES: tuple[Use, ...] = ("auto", "bounds", "values", "filter", "hidden")
#: Numbers that mean the same in YAML, where 010 is eight.
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_NAME = re.compile(r"[^\W_][\w .@-]{0,99}")
#: The δ that the page offers: far below one in the number of people of any table.
DELTA = "1e-9"

Form = Mapping[str, str]


@dataclass
class SetupDraft:
    """The state of the page."""

    path: Path
    address: str = ""
    offered: list[OfferedTable] = field(default_factory=list)
    tables: list[OfferedTable] = field(default_factory=list)
    choices: dict[str, TableChoice] = field(default_factory=dict)
    analyst: str = "ana"
    done: set[str] = field(default_factory=set)

    @property
    def next(self) -> str:
        """The first step that was not taken."""
        return next(step for step in STEPS if step not in self.done)

    def reachable(self, step: str) -> bool:
        """Return whether all steps before this one were taken."""
        return list(STEPS).index(step) <= list(STEPS).index(self.next)

    @property
    def private(self) -> list[OfferedTable]:
        """The tables that are about people."""
        return [table for table in self.tables if not self.choices[table.name].public]

    def take_tables(self, tables: list[OfferedTable]) -> None:
        """Start from other tables; what was chosen for a table that stays is kept."""
        former = {table.name: table for table in self.tables}
        kept = {t.name: self.choices[t.name] for t in tables if former.get(t.name) == t}
        first = {t.name: TableChoice(columns={f.name: _proposed(f) for f in t.usable}) for t in tables}
        self.tables, self.choices = tables, {**first, **kept}
        if set(kept) != set(first):
            self.done = set()
        self.done.add("data")

    def take_people(self, form: Form) -> None:
        """Say for each table who is a person."""
        choices = {}
        for place, table in enumerate(self.tables):
            unit, column = form.get(f"unit-{place}"), form.get(f"column-{place}", "")
            before = replace(self.choices[table.name], public=unit == "public", column=None, groups=None, rows=None)
            if unit == "column":
                if column not in [f.name for f in table.usable]:
                    raise _missing(
                        f"{table.name}: no column was chosen.", "Choose the column that says who a person is."
                    )
                if form.get(f"rows-{place}") == "declared":
                    groups = _whole(form.get(f"groups-{place}", ""))
                    rows = _whole(form.get(f"most-{place}", ""))
                    before = replace(before, groups=groups, rows=rows)
                before = replace(before, column=column)
                columns = dict(before.columns)
                if column not in {f.name for f in table.usable if columns[f.name].use == "hidden"}:
                    columns[column] = ColumnChoice(columns[column].kind, "filter")  # nobody sums up numbers of people
                before = replace(before, columns=columns)
            elif unit not in ("row", "public"):
                raise _missing(f"{table.name}: nothing was chosen.", "Say who is a person in this table.")
            choices[table.name] = before
        self._accept(choices, "people")

    def take_columns(self, form: Form) -> None:
        """Say for each column what analysts may do with it."""
        choices = {}
        for place, table in enumerate(self.tables):
            columns = {}
            for number, each in enumerate(table.usable):
                suffix = f"{place}-{number}"
                kind = (
                    each.kind
                    if not each.untyped
                    else next((kind for kind in Kind if kind.value == form.get(f"kind-{suffix}")), each.kind)
                )
                use = next((use for use in _USES if use == form.get(f"use-{suffix}")), None)
                if kind is None or use is None:
                    raise _missing(
                        f"{table.name}.{each.name}: nothing was chosen.", "Choose what analysts may do with it."
                    )
                text = form.get(f"values-{suffix}", "")
                columns[each.name] = ColumnChoice(kind, use, _listed(f"{table.name}.{each.name}", kind, use, text))
            choices[table.name] = replace(self.choices[table.name], columns=columns)
        self._accept(choices, "columns")

    def take_budget(self, form: Form) -> None:
        """Set the budget of each table about people."""
        choices = dict(self.choices)
        for place, table in enumerate(self.private):
            epsilon = _epsilon(form.get(f"epsilon-{place}", ""))
            most = form.get(f"per_query-{place}", "").strip()
            choices[table.name] = replace(
                choices[table.name],
                epsilon=epsilon,
                delta=DELTA if form.get(f"delta-{place}") else None,
                per_query=_epsilon(most) if most else None,
                cap=min(choices[table.name].cap, epsilon, key=Fraction),
            )
        self._accept(choices, "budget")

    def take_analyst(self, form: Form) -> None:
        """Name the first analyst and their part of the budgets."""
        name = form.get("name", "").strip()
        if not _NAME.fullmatch(name) or name == "owner":
            raise _missing(
                "The name of the analyst is empty, or has other signs than letters, digits, space and . @ _ -",
                "Write a name such as ana. The name owner is yours.",
            )
        choices = dict(self.choices)
        for place, table in enumerate(self.private):
            choices[table.name] = replace(choices[table.name], cap=_epsilon(form.get(f"cap-{place}", "")))
        former, self.analyst = self.analyst, name
        try:
            self._accept(choices, "analyst")
        except ConfigError:
            self.analyst = former
            raise

    def text(self, choices: Mapping[str, TableChoice] | None = None) -> str:
        """Write hubbub.yaml as it would be now."""
        listed = [(table.name, table.source, table.fields) for table in self.tables]
        return template(listed, analyst=self.analyst, guessed=True, choices=choices or self.choices)

    def write(self) -> Config:
        """Write hubbub.yaml, and return what it says; an existing file is never replaced."""
        return config_editor.create(self.path, self.text())

    def _accept(self, choices: Mapping[str, TableChoice], step: str) -> None:
        """Check what hubbub.yaml would say, and keep it."""
        if all(choice.column is None or choice.column in choice.columns for choice in choices.values()):
            _, problems = config_editor.check_text(self.path, self.text(choices), None)
            if problems:
                raise problems[0]
        self.choices = dict(choices)
        self.done.add(step)


def _proposed(each: Field) -> ColumnChoice:
    """Propose a use that tells nothing about the data: bounds are found privately, and texts only filter."""
    kind = each.kind or Kind.TEXT
    return ColumnChoice(kind, "auto" if kind.numeric else "filter")


def _listed(where: str, kind: Kind, use: Use, text: str) -> tuple[str, ...]:
    if use not in ("bounds", "values"):
        return ()
    parts = tuple(part.strip() for part in text.split(",") if part.strip())
    if use == "bounds" and len(parts) != 2:
        raise ConfigError("HB387", f"{where} needs two bounds.", "Write the lowest and the highest value: 0, 110")
    if not parts:
        raise ConfigError("HB387", f"{where} needs values.", "Write them with commas between: North, South")
    if kind.numeric and not all(_NUMBER.fullmatch(part) for part in parts):
        raise ConfigError("HB387", f"{where} is a number, and something else was written.", "Write numbers: 0, 110")
    return parts


def _epsilon(text: str) -> str:
    """Return a privacy cost as it is written to hubbub.yaml."""
    text = text.strip()
    numbers.epsilon(text)
    if not _NUMBER.fullmatch(text):
        raise ConfigError("HB387", "The privacy budget is not a decimal number.", "Write a number such as 0.5 or 3.")
    return text


def _whole(text: str) -> int:
    """Read a contribution limit."""
    text = text.strip()
    if not (text.isascii() and text.isdecimal() and 1 <= len(text) <= 9 and int(text)):
        raise _missing("The limits on the rows of one person are not whole numbers.", "Write numbers such as 10 and 5.")
    return int(text)


def _missing(message: str, remedy: str) -> ConfigError:
    return ConfigError("HB388", message, remedy)
