"""What the bounds of a planned query leave out, and the newest profile of each dataset.

Tested in tests/curator/test_left_out.py.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

from hubbub.accounting.cost import blocks_of_facts
from hubbub.accounting.reviews import PUBLISHED
from hubbub.accounting.store import EntryFilter, Snapshot
from hubbub.analyses.base import PreparedAnalysis
from hubbub.answers.left_out import Clamp, Evidence, LeftOut, Share
from hubbub.answers.profile import Profile, blocks_read
from hubbub.core import chunked_json
from hubbub.core.blocks import BlockSet
from hubbub.core.list_columns import length_name, part_of
from hubbub.core.numbers import brief
from hubbub.core.schema import Bounds, Kind, Table
from hubbub.curator import enforced
from hubbub.sql import fanout, natural_bounds
from hubbub.sql.estimates import mentioned
from hubbub.sql.expressions import Col
from hubbub.sql.keys import Cells
from hubbub.sql.measures import BoundedSum, KeyWeight, UnitCount
from hubbub.sql.natural_bounds import clamps
from hubbub.sql.numbered import most_rows
from hubbub.sql.plan import Plan
from hubbub.sql.relations import (
    Filter,
    Join,
    PerUnit,
    Project,
    Rel,
    Scan,
    Truncate,
    Union,
    UnitWindow,
    columns,
    scans,
    window_expressions,
)

#: Which of several bounds that a query found is stated.
_ORDER = ("rows", "sum", "cells")


def describe(plan: Plan) -> LeftOut:
    """State what a planned query bounds and reads otherwise than it is stored, from the plan alone."""
    tables = frozenset(table.name for table in plan.tables if table.unit is not None)
    return replace(
        _bounded(plan),
        unlisted=_unlisted(plan, tables),
        ungrouped=enforced.dropped(plan.query, tables),
        null_keys=enforced.keys_without_null(plan, tables),
        fills_null=enforced.fills_null(plan.query),
    )


def _bounded(plan: Plan) -> LeftOut:
    private = [table for table in plan.tables if table.unit is not None]
    names = " and ".join(table.name for table in private)
    clamped = _clamped(plan, private)
    limits = plan.limits
    if limits is None:
        return LeftOut(names, clamped=clamped)
    unit = next(table.unit.column for table in private if table.unit is not None)
    if limits.owners > 1:
        return replace(_of_owners(plan, names, unit), clamped=clamped)
    if _one_row(plan.query.relation):
        return LeftOut(names, unit, counts="units", clamped=clamped)
    measures = [noised.measure for noised in plan.measures if not isinstance(noised.measure, KeyWeight)]
    once = bool(measures) and not plan.choices and all(isinstance(each, UnitCount) for each in measures)
    declared = all(isinstance(each, Cells) for each in plan.groups)
    if limits.auto and not (once and not plan.query.keys):
        return replace(_found(plan, names, unit), clamped=clamped)
    return LeftOut(
        names,
        unit,
        None if declared and max(each.size for each in plan.groups) <= limits.groups else limits.groups,
        None if once else limits.rows,
        counts="units" if once else "rows",
        by=_grouped_by(plan),
        filtered=_has_filter(plan.query.relation) or any(each.where is not None for each in plan.query.aggregates),
        clamped=clamped,
        rows_total=None if once else limits.total,
    )


def _of_owners(plan: Plan, names: str, unit: str | None) -> LeftOut:
    """State the bound that a query over rows with two owners chose, or that it will choose one."""
    columns = next(tuple(str(each.column) for each in table.owners) for table in plan.tables if table.others)
    maximum = None if plan.limits is None else plan.limits.rows
    statement = LeftOut(names, unit, maximum=maximum, owners=columns)
    for place, chosen in sorted(plan.left_out.items()):
        measure = plan.measures[place].measure
        if isinstance(measure, BoundedSum):
            return replace(statement, total=chosen.bound * float(measure.step))
        return replace(statement, rows=chosen.bound)
    return statement


def _found(plan: Plan, names: str, unit: str | None) -> LeftOut:
    """State the bound that a query found, or that it will find one: that of rows, if there are several."""
    limits = plan.limits
    if limits is None:
        raise AssertionError("only bounds of units are found")
    statement = LeftOut(names, unit, maximum=limits.rows, joined=fanout.undeclared_cut(plan.query.relation))
    for place, chosen in sorted(plan.left_out.items(), key=lambda item: _ORDER.index(item[1].contribution)):
        share = Share(chosen.share, 0.0, chosen.largest_share)
        above = None if not chosen.above else limits.rows
        stated = replace(statement, share=share, evidence=Evidence(0, level=above, above=round(chosen.above)))
        if chosen.contribution == "rows":
            return replace(stated, rows=chosen.bound)
        if chosen.contribution == "cells":
            return replace(stated, groups=chosen.bound, counts="units")
        measure = plan.measures[place].measure
        return replace(stated, total=chosen.bound * float(measure.step) if isinstance(measure, BoundedSum) else None)
    return statement


def _one_row(rel: Rel) -> bool:
    """Say whether a relation has at most one row of each unit: by its key, or because rows are grouped or numbered."""
    if most_rows(rel) == 1 or natural_bounds.most_rows(rel) == 1:
        return True
    while isinstance(rel, Filter | Project):
        rel = rel.input
    return isinstance(rel, PerUnit) and not rel.keys


def _only_scan(rel: Rel) -> Scan | None:
    """Find the scan of a query over one table whose rows are not joined or grouped."""
    while isinstance(rel, Filter | Project):
        rel = rel.input
    return rel if isinstance(rel, Scan) else None


def _has_filter(rel: Rel) -> bool:
    return isinstance(rel, Filter) or (isinstance(rel, Project) and _has_filter(rel.input))


def _grouped_by(plan: Plan) -> str | None:
    """Name what the groups are: "" for none, or a declared column; None if the profile cannot know."""
    scan = _only_scan(plan.query.relation)
    if scan is None or len(plan.query.sets) > 1 or not all(isinstance(each, Cells) for each in plan.groups):
        return None
    if not plan.query.keys:
        return ""
    if len(plan.query.keys) > 1:
        return None
    (key,) = plan.query.keys
    return _sources(scan).get(key.expr.name) if isinstance(key.expr, Col) else None


#: What is clamped where a count or a sum of one unit's rows has the bounds that `rows_total` implies.
WITHIN_UNIT = "A count or sum for each unit"


def _sources(scan: Scan) -> dict[str, str]:
    return {column.name: source for column, source in zip(scan.columns, scan.sources, strict=True)}


def _clamped(plan: Plan, private: Iterable[Table]) -> tuple[Clamp, ...]:
    """List the columns of private tables that are clamped where it can matter, with their bounds."""
    names = {name for aggregate in plan.query.aggregates for expr in aggregate.arguments for name in mentioned(expr)}
    tables, bounds = {table.name for table in private}, dict[str, Bounds]()
    for scan, source in _read(plan.query.relation, names):
        column = scan.table.column(source)
        if scan.table.name not in tables or column is None or not column.kind.numeric or column.values is not None:
            continue
        if column.bounds is not None:
            bounds[_named(source)] = (
                column.bounds if not column.auto else (_found_bounds(plan, scan, source) or column.bounds)
            )
    for reading in enforced.selections(plan.query):
        for scan, source in _read(reading.rel, set(reading.names)):
            column = scan.table.column(source)
            if scan.table.name not in tables or column is None or column.values is not None or column.auto:
                continue
            if column.kind.numeric and column.bounds is not None:
                bounds.setdefault(_named(source), column.bounds)
    bounds |= _lengths(plan.query.relation, tables)
    within = {each for aggregate in plan.query.aggregates for expr in aggregate.arguments for each in clamps(expr)}
    counts = [(WITHIN_UNIT, each) for each in sorted(within, key=lambda each: (each.low, each.high))]
    listed = [*sorted(bounds.items()), *counts]
    return tuple(Clamp(name, brief(each.low), brief(each.high)) for name, each in listed)


def _unlisted(plan: Plan, tables: frozenset[str]) -> tuple[str, ...]:
    """List the columns of private tables whose unlisted values are read as NULL, where it can matter."""
    found = set[str]()
    for reading in (*enforced.selections(plan.query), *enforced.arguments(plan.query)):
        for scan, source in _read(reading.rel, set(reading.names)):
            column = scan.table.column(source)
            if scan.table.name not in tables or column is None or column.kind is Kind.BOOLEAN:
                continue
            if column.values is not None and column.other is None:
                found.add(_named(source))
    return tuple(sorted(found))


def _named(source: str) -> str:
    """Name a column as owners declare it: the elements of a list by its name."""
    part = part_of(source)
    return source if part is None else part[0] if part[1] else f"the length of {part[0]}"


def _lengths(rel: Rel, private: set[str]) -> dict[str, Bounds]:
    """Return how many elements are read of each list of which the query reads a part."""
    read: dict[str, Bounds] = {}
    for scan, source in ((each, source) for each in scans(rel) for source in each.sources):
        part = part_of(source)
        length = None if part is None else scan.table.column(length_name(part[0]))
        if part is not None and length is not None and length.bounds is not None and scan.table.name in private:
            read[_named(length.name)] = length.bounds
    return read


def _found_bounds(plan: Plan, scan: Scan, source: str) -> Bounds | None:
    """Return the bounds that a query found for a column of `bounds: auto`, if it is an argument by itself."""
    arguments = [expr for aggregate in plan.query.aggregates for expr in aggregate.arguments]
    own = [expr for expr in arguments if isinstance(expr, Col) and _sources(scan).get(expr.name) == source]
    return next((expr.facts.bounds for expr in own if expr.facts.bounds is not None), None)


def _read(rel: Rel, names: set[str]) -> Iterator[tuple[Scan, str]]:
    """List the columns of tables from which some columns of a relation are computed."""
    match rel:
        case Scan():
            yield from ((rel, source) for name, source in _sources(rel).items() if name in names)
        case Filter() | Truncate():
            yield from _read(rel.input, names)
        case Project():
            yield from _read(rel.input, {each for name, e in rel.outputs if name in names for each in mentioned(e)})
        case PerUnit():
            inner = [e for name, e in rel.keys if name in names]
            inner += [e.argument for name, e in rel.aggregates if name in names and e.argument is not None]
            yield from _read(rel.input, {each for expr in inner for each in mentioned(expr)})
        case UnitWindow():
            read = [e for name, each in rel.functions if name in names for e in window_expressions(each)]
            yield from _read(rel.input, names | {each for expr in read for each in mentioned(expr)})
        case Join():
            yield from _read(rel.left, names)
            yield from _read(rel.right, names)
        case Union():
            places = [place for place, column in enumerate(rel.columns) if column.name in names]
            for each in rel.inputs:
                yield from _read(each, {columns(each)[place].name for place in places})


#: A version, and the blocks that were read.
_Data = tuple[str, BlockSet | None]


class Profiles:
    """The newest profile of each dataset that its owner published. Thread-safe.

    It remembers the last entry that it read, so that an update reads only the newer ones, and it never reads data.
    """

    def __init__(self) -> None:
        self._read = 0
        self._pending: dict[int, str] = {}
        self._known: dict[str, dict[_Data, Profile]] = {}
        self._versions: dict[tuple[str, BlockSet | None], str] = {}  # of the newest charge on these blocks
        self._lock = Lock()

    def take_in(self, snapshot: Snapshot) -> None:
        """Read the charges that were made since the last update, and the releases of those that have one now."""
        newest = snapshot.head().sequence
        with self._lock:
            if newest <= self._read:
                return
            for entry in snapshot.entries(EntryFilter(kind="charge"), after=self._read):
                self._versions[entry.dataset, blocks_of_facts(entry.facts)] = entry.version
                if entry.key.startswith(f"{PUBLISHED} "):
                    self._pending[entry.sequence] = entry.dataset
            self._read = newest
            for charge, dataset in sorted(self._pending.items()):
                stored = snapshot.body(charge)
                if stored is not None:
                    document = chunked_json.loads(stored)
                    data = document["receipt"]["data"][0]
                    profile = Profile(document["answer"]["model"], charge, data["version"], blocks_read(data))
                    known = self._known.setdefault(dataset, {})
                    known.pop((profile.version, profile.blocks), None)
                    known[profile.version, profile.blocks] = profile
                    del self._pending[charge]

    def find(self, dataset: str, version: str | None = None, blocks: BlockSet | None = None) -> Profile | None:
        """Give the newest profile of a version of a dataset and of these blocks, or else the newest of all."""
        with self._lock:
            known = self._known.get(dataset, {})
            return known.get((version or "", blocks)) or next(reversed(known.values()), None)

    def planned(self, planned: PreparedAnalysis, versions: Mapping[str, str] | None = None) -> LeftOut:
        """State what the bounds of a plan leave out, of data in these versions, or in those of the newest charge."""
        read = {table.name: table.read_blocks for table in planned.private}
        return self._state(planned.stated_left_out, read, versions)

    def recorded(self, left_out: LeftOut, data: Sequence[Mapping[str, Any]]) -> LeftOut:
        """Add to the statement of a receipt what is known now; `data` is from the receipt."""
        read = {each["dataset"]: blocks_read(each) for each in data}
        return self._state(left_out, read, {each["dataset"]: each["version"] for each in data})

    def _state(
        self,
        left_out: LeftOut,
        read: Mapping[str, BlockSet | None],
        versions: Mapping[str, str] | None,
    ) -> LeftOut:
        """Add the shares that are known from a profile; `read` has the blocks of each dataset that are read."""
        dataset = left_out.dataset
        blocks = read.get(dataset)
        version = self._versions.get((dataset, blocks)) if versions is None else versions.get(dataset)
        profile = self.find(dataset, version, blocks)
        return left_out if profile is None else profile.state(left_out, version, blocks)
