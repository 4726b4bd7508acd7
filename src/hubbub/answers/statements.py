"""Statements other than queries, for DB-API and PostgreSQL clients: SET, RESET, EXPLAIN, and the catalog tables.

Tested in tests/client/dbapi/test_dbapi.py.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Any, Protocol, Unpack

from hubbub.answers.budget import BudgetOverview, PastCharge
from hubbub.answers.estimate import Estimate, margin
from hubbub.answers.options import Options
from hubbub.answers.release import Release
from hubbub.core import numbers
from hubbub.core.numbers import brief, round_down
from hubbub.core.schema import Column, Table
from hubbub.errors import ParameterError

Rows = list[tuple[Any, ...]]
Names = tuple[tuple[str, type], ...]
#: Reads the value of an option, given its name for errors.
OptionParser = Callable[[Any, str], Any]


class CatalogSource(Protocol):
    """What the catalog tables are made of."""

    def datasets(self) -> tuple[str, ...]: ...  # noqa: D102
    def describe(self, dataset: str) -> Table: ...  # noqa: D102
    def budget(self) -> tuple[BudgetOverview, ...]: ...  # noqa: D102
    def releases(self, *, limit: int = 100, before: int | None = None) -> tuple[PastCharge, ...]: ...  # noqa: D102


class AnySession(CatalogSource, Protocol):
    """A session from `hubbub.open` or `hubbub.connect`."""

    def estimate(self, sql: str, **options: Unpack[Options]) -> Estimate: ...  # noqa: D102
    def query(  # noqa: D102
        self, sql: str, *, key: str | None = None, free: bool = False, **options: Unpack[Options]
    ) -> Release: ...
    def close(self) -> None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a statement: names and types of columns, and rows."""

    names: Names
    rows: Rows
    release: Release | None = None


_NO_MORE: Mapping[str, OptionParser] = {}
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
_CATALOG = re.compile(r"SELECT\s+\*\s+FROM\s+hubbub\.(\w+)\s*;?\s*", re.IGNORECASE)


def strip_comments(sql: str) -> str:
    """Strip leading blanks and comments."""
    return _BLANK.sub("", sql)


def changed_settings(sql: str, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the settings after a SET or RESET, or None for any other statement."""
    if match := _RESET.fullmatch(strip_comments(sql)):
        return set_option(settings, match[1].lower(), None)
    if match := _SET.fullmatch(strip_comments(sql)):
        return set_option(settings, match[1].lower(), literal(match[2]))
    return None


def explained_query(sql: str) -> str | None:
    """Return the query of an EXPLAIN, or None."""
    match = _EXPLAIN.fullmatch(strip_comments(sql))
    return None if match is None else match[1]


def set_option(
    settings: Mapping[str, Any], name: str, value: object, *, more: Mapping[str, OptionParser] = _NO_MORE
) -> dict[str, Any]:
    """Set an option, one of DB-API's or `more`; setting `epsilon` removes `within`, and vice versa."""
    parsers = {**_PARSERS, **more}
    if name not in parsers:
        raise ParameterError(
            "HB185", f"There is no option hubbub.{name}.", f"Choose one of: {', '.join(sorted(parsers))}."
        )
    other = {"epsilon": "within", "within": "epsilon"}.get(name)
    kept = {key: old for key, old in settings.items() if key not in (name, other)}
    return kept if value is None else kept | {name: parsers[name](value, name)}


def literal(text: str) -> str | None:
    """Return the value of a SET: without quotes, or None for DEFAULT."""
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


def truth(value: Any, name: str) -> bool:
    """Read on or off."""
    known = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}
    if isinstance(value, bool):
        return value
    if str(value).lower() not in known:
        raise ParameterError(
            "HB185", f"Invalid value for hubbub.{name}.", f"Use on or off, as in SET hubbub.{name} = on."
        )
    return known[str(value).lower()]


def _text(value: Any, name: str) -> str:  # noqa: ARG001 - one signature for all parsers
    return str(value)


_PARSERS: Mapping[str, OptionParser] = {
    "epsilon": _exact,
    "within": _margin,
    "delta": _exact,
    "groups": _whole,
    "rows": _whole,
    "raw": truth,
    "dialect": _text,
    "intervals": truth,
    "free": truth,
}


#: The names of all options.
OPTION_NAMES = tuple(_PARSERS)


def answer(release: Release, *, intervals: bool) -> Result:
    """Return a release as rows; with `intervals`, each noisy column is followed by the ends of its 95% intervals."""
    columns = release.flat(intervals=intervals)
    names = tuple((column.name, _TYPES[column.kind]) for column in columns)
    return Result(names, list(zip(*(column.values for column in columns), strict=True)), release)


def plan(estimate: Estimate) -> Result:
    """Return an estimate as rows of items and values."""
    if not estimate.epsilon:
        return Result((("item", str), ("value", str)), [("cost", estimate.derivation[0])])
    cost = f"ε = {brief(estimate.epsilon)}" + (f", δ = {brief(estimate.delta)}" if estimate.delta else "")
    largest = f"no: the largest query possible now costs ε = {round_down(estimate.largest)}"
    rows: Rows = [("sandbox", estimate.sandbox)] if estimate.sandbox else []
    rows += [
        ("cost", f"{cost} on {', '.join(estimate.datasets)}"),
        ("admitted", "yes" if estimate.admitted else largest),
        ("noise", estimate.noise),
        ("cells", str(estimate.cells)),
    ]
    rows += [(f"error of {expected.name}", margin(expected)) for expected in estimate.expected]
    rows += [("target", estimate.target)] if estimate.target else []
    rows += [("warning", warning) for warning in estimate.warnings]
    rows += [("why", line) for line in estimate.derivation]
    return Result((("item", str), ("value", str)), rows)


def catalog_table(sql: str, session: CatalogSource) -> Result | None:
    """Return the catalog table of `SELECT * FROM hubbub.…`, or None for any other statement."""
    match = _CATALOG.fullmatch(strip_comments(sql))
    if match is None:
        return None
    create = CATALOG_TABLES.get(match[1].lower())
    if create is None:
        raise ParameterError(
            "HB186", f"There is no table hubbub.{match[1]}.", f"Choose one of: {', '.join(sorted(CATALOG_TABLES))}."
        )
    return create(session)


def _budget(session: CatalogSource) -> Result:
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


def _datasets(session: CatalogSource) -> Result:
    tables = [session.describe(name) for name in session.datasets()]
    names = (("dataset", str), ("protected", str), ("columns", int))
    return Result(names, [(table.name, _protected(table), len(table.columns)) for table in tables])


def _protected(table: Table) -> str | None:
    return None if table.unit is None else table.unit.column or "row"


def _columns(session: CatalogSource) -> Result:
    names = (("dataset", str), ("name", str), ("type", str), ("low", float), ("high", float), ("values", int))
    tables = [session.describe(name) for name in session.datasets()]
    visible = [(table, column) for table in tables for column in table.columns if not column.hidden]
    return Result(names, [(table.name, column.name, column.kind.value, *_facts(column)) for table, column in visible])


def _facts(column: Column) -> tuple[float | None, float | None, int | None]:
    bounds, values = column.bounds, column.values
    count = None if values is None else len(values)
    return (None, None, count) if bounds is None else (float(bounds.low), float(bounds.high), count)


def _releases(session: CatalogSource) -> Result:
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
            charge.id,
            charge.time.replace(tzinfo=None),
            charge.dataset,
            charge.query,
            float(charge.epsilon),
            float(charge.delta),
            charge.released,
        )
        for charge in session.releases(limit=1000)
    ]
    return Result(names, rows)


def below(value: Fraction) -> float:
    """Return the largest float that does not exceed a remaining budget.

    >>> below(Fraction(1, 10)) <= Fraction(1, 10), below(Fraction(3))
    (True, 3.0)
    """
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


#: The tables of the schema `hubbub`.
CATALOG_TABLES: Mapping[str, Callable[[CatalogSource], Result]] = {
    "budget": _budget,
    "datasets": _datasets,
    "columns": _columns,
    "releases": _releases,
}
