"""The statements beside SELECT: SET and RESET of options, EXPLAIN, and tables about the curator itself."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Any, Protocol, Unpack

from hubbub.answers.budget import BudgetOverview, PastCharge
from hubbub.answers.estimate import Estimate, margin
from hubbub.answers.options import Options
from hubbub.answers.release import Release
from hubbub.client.dbapi.errors import ProgrammingError
from hubbub.core import numbers
from hubbub.core.numbers import brief, round_down
from hubbub.core.schema import Column, Table

Rows = list[tuple[Any, ...]]
Names = tuple[tuple[str, type], ...]


class AnySession(Protocol):
    """What `hubbub.open` and `hubbub.connect` give."""

    def datasets(self) -> tuple[str, ...]: ...  # noqa: D102
    def describe(self, dataset: str) -> Table: ...  # noqa: D102
    def budget(self) -> tuple[BudgetOverview, ...]: ...  # noqa: D102
    def releases(self, *, limit: int = 100, before: int | None = None) -> tuple[PastCharge, ...]: ...  # noqa: D102
    def estimate(self, sql: str, **options: Unpack[Options]) -> Estimate: ...  # noqa: D102
    def query(self, sql: str, *, key: str | None = None, **options: Unpack[Options]) -> Release: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Result:
    """What a statement gives: names and types of columns, and rows."""

    names: Names
    rows: Rows
    release: Release | None = None


_TYPES: Mapping[str, type] = {
    "boolean": bool,
    "integer": int,
    "real": float,
    "text": str,
    "date": date,
    "timestamp": datetime,
}
_BLANK = re.compile(r"\A(?:\s+|--[^\n]*(?:\n|\Z)|/\*.*?\*/)+", re.DOTALL)
_SET = re.compile(r"SET\s+hubbub\.(\w+)\s*(?:=|\sTO\s)\s*(.+?)\s*;?\s*", re.IGNORECASE | re.DOTALL)
_RESET = re.compile(r"RESET\s+hubbub\.(\w+)\s*;?\s*", re.IGNORECASE)
_EXPLAIN = re.compile(r"EXPLAIN\s+(.*)", re.IGNORECASE | re.DOTALL)
_ABOUT = re.compile(r"SELECT\s+\*\s+FROM\s+hubbub\.(\w+)\s*;?\s*", re.IGNORECASE)


def strip_comments(sql: str) -> str:
    """Leave out blanks and comments before the first word."""
    return _BLANK.sub("", sql)


def changed_settings(sql: str, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Give the settings after a SET or RESET, or None for any other statement."""
    if found := _RESET.fullmatch(strip_comments(sql)):
        return set_option(settings, found[1].lower(), None)
    if found := _SET.fullmatch(strip_comments(sql)):
        return set_option(settings, found[1].lower(), _word(found[2]))
    return None


def explained_query(sql: str) -> str | None:
    """Give the question of an EXPLAIN, or None."""
    found = _EXPLAIN.fullmatch(strip_comments(sql))
    return None if found is None else found[1]


def set_option(settings: Mapping[str, Any], name: str, value: object) -> dict[str, Any]:
    """Set an option; `epsilon` and `within` exclude each other, and the later one holds."""
    if name not in _READ:
        raise ProgrammingError(
            "HB185", f"there is no option called hubbub.{name}.", f"There are {', '.join(sorted(_READ))}."
        )
    other = {"epsilon": "within", "within": "epsilon"}.get(name)
    kept = {key: old for key, old in settings.items() if key not in (name, other)}
    return kept if value is None else kept | {name: _READ[name](value, name)}


def _word(text: str) -> str | None:
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return None if text.upper() in ("DEFAULT", "NULL") else text


def _exact(value: Any, name: str) -> Fraction:
    return numbers.exact(value, name)


def _margin(value: Any, name: str) -> Any:
    if not (isinstance(value, str) and value.strip().endswith("%")):
        return numbers.exact(value, name)
    numbers.exact(value.strip()[:-1], name)
    return value


def _whole(value: Any, name: str) -> int:
    given = int(value) if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value, re.ASCII) else value
    return numbers.integer(given, name, 1, 10**9)


def _truth(value: Any, name: str) -> bool:
    known = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}
    if isinstance(value, bool):
        return value
    if str(value).lower() not in known:
        raise ProgrammingError("HB185", f"hubbub.{name} is on or off.", f"Write SET hubbub.{name} = on.")
    return known[str(value).lower()]


def _text(value: Any, name: str) -> str:  # noqa: ARG001 - one shape for all readers
    return str(value)


_READ: Mapping[str, Callable[[Any, str], Any]] = {
    "epsilon": _exact,
    "within": _margin,
    "delta": _exact,
    "groups": _whole,
    "rows": _whole,
    "raw": _truth,
    "dialect": _text,
    "intervals": _truth,
}


def answer(release: Release, *, intervals: bool) -> Result:
    """Give an answer as rows; with `intervals`, each noisy column is followed by the ends of its 95% intervals."""
    names: list[tuple[str, type]] = []
    columns: list[Iterable[object]] = []
    for output in release.outputs:
        names.append((output.name, _TYPES[output.kind]))
        columns.append(output.values)
        if intervals and output.low is not None and output.high is not None:
            names += [(f"{output.name}_low", float), (f"{output.name}_high", float)]
            columns += [output.low, output.high]
    return Result(tuple(names), list(zip(*columns, strict=True)), release)


def plan(found: Estimate) -> Result:
    """Give an estimate as rows of names and texts."""
    price = f"ε = {brief(found.epsilon)}" + (f", δ = {brief(found.delta)}" if found.delta else "")
    rows: Rows = [
        ("cost", f"{price} on {', '.join(found.datasets)}"),
        ("admitted", "yes" if found.admitted else f"no: up to ε = {round_down(found.largest)} would pass"),
        ("noise", found.noise),
        ("cells", str(found.cells)),
    ]
    rows += [(f"error of {each.name}", margin(each)) for each in found.expected]
    rows += [("why", line) for line in found.derivation]
    return Result((("item", str), ("value", str)), rows)


def catalog_table(sql: str, session: AnySession) -> Result | None:
    """Answer `SELECT * FROM hubbub.…` about the curator itself, or give None for any other statement."""
    found = _ABOUT.fullmatch(strip_comments(sql))
    if found is None:
        return None
    tables: Mapping[str, Callable[[AnySession], Result]] = {
        "budget": _budget,
        "datasets": _datasets,
        "columns": _columns,
        "releases": _releases,
    }
    make = tables.get(found[1].lower())
    if make is None:
        raise ProgrammingError(
            "HB186", f"there is no table called hubbub.{found[1]}.", f"There are {', '.join(sorted(tables))}."
        )
    return make(session)


def _budget(session: AnySession) -> Result:
    names = (
        ("analyst", str),
        ("dataset", str),
        ("scope", str),
        ("name", str),
        ("per", str),
        ("epsilon", float),
        ("delta", float),
        ("spent", float),
        ("left", float),
    )
    rows: Rows = [
        (
            view.analyst,
            view.dataset,
            cap.scope,
            cap.name,
            cap.per,
            float(cap.epsilon),
            float(cap.delta),
            None if cap.spent is None else float(cap.spent),
            below(cap.left),
        )
        for view in session.budget()
        for cap in view.caps
    ]
    return Result(names, rows)


def _datasets(session: AnySession) -> Result:
    tables = [session.describe(name) for name in session.datasets()]
    names = (("dataset", str), ("protected", str), ("columns", int))
    return Result(names, [(table.name, _protected(table), len(table.columns)) for table in tables])


def _protected(table: Table) -> str | None:
    return None if table.unit is None else table.unit.column or "row"


def _columns(session: AnySession) -> Result:
    names = (("dataset", str), ("name", str), ("type", str), ("low", float), ("high", float), ("values", int))
    tables = [session.describe(name) for name in session.datasets()]
    seen = [(table, column) for table in tables for column in table.columns if not column.hidden]
    return Result(names, [(table.name, column.name, column.kind.value, *_facts(column)) for table, column in seen])


def _facts(column: Column) -> tuple[float | None, float | None, int | None]:
    bounds, values = column.bounds, column.values
    count = None if values is None else len(values)
    return (None, None, count) if bounds is None else (float(bounds.low), float(bounds.high), count)


def _releases(session: AnySession) -> Result:
    names = (
        ("id", int),
        ("time", datetime),
        ("dataset", str),
        ("query", str),
        ("epsilon", float),
        ("delta", float),
        ("released", bool),
    )
    rows: Rows = [
        (
            each.id,
            each.time.replace(tzinfo=None),
            each.dataset,
            each.query,
            None if each.epsilon is None else float(each.epsilon),
            float(each.delta),
            each.released,
        )
        for each in session.releases(limit=1000)
    ]
    return Result(names, rows)


def below(value: Fraction) -> float:
    """Give the largest float that is not above: nobody shall count on more than is left.

    >>> below(Fraction(1, 10)) <= Fraction(1, 10), below(Fraction(3))
    (True, 3.0)
    """
    found = float(value)
    return found if Fraction(found) <= value else math.nextafter(found, -math.inf)
