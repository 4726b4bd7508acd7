"""Predict how much memory a statement takes, and split one that takes too much: each part has some of the units.

How much there is to do follows from the number of rows that the owner declares (`size` in hubbub.yaml). No row is read.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from hubbub.sql.relations import Filter, Join, PerUnit, Project, Rel, Scan, Truncate, Union, UnitWindow, scans

#: The most parts. Each reads the whole table once.
MAX_PARTS = 64
#: The share of the engine's memory that one statement may take: others run at the same time.
_SHARE = 0.5
#: Bytes of one pair of unit and group, of each number and each key in it, measured with `benchmarks/large.py`.
_PAIR, _NUMBER, _KEY = 48, 16, 24
#: Rows up to which storing them is cheaper than reading them twice, measured on one thread.
_FEW = 1 << 18
#: MB that any statement takes.
_LEAST = 20
#: Seconds for a row: to read a number of it, and to find its pair of unit and group. Measured there as well.
_READ, _GATHER = 1.5e-8, 2.5e-7


@dataclass(frozen=True, slots=True)
class Work:
    """What the statements of a plan are expected to take.

    rows    the rows that they read, as declared
    memory  MB, in each part
    parts   the number of parts in which they run
    seconds of one thread on an ordinary machine
    """

    rows: int
    memory: int
    parts: int
    seconds: float


def expected_rows(rel: Rel) -> int | None:
    """Return how many rows of private tables a relation reads, as their owners declare; None if one of them does not.

    Rows of public tables are not counted, nor what a join multiplies.
    """
    declared = [scan.table.expected_rows for scan in scans(rel) if scan.table.unit is not None]
    known = [rows for rows in declared if rows is not None]
    return sum(known) if known and len(known) == len(declared) else None


def small(rel: Rel) -> bool:
    """Whether a relation is declared to have so few rows that storing them is cheaper than reading them twice."""
    rows = expected_rows(rel)
    return rows is not None and rows <= _FEW


def predicted(rel: Rel, *, numbers: int, keys: int, by_unit: bool, memory: int | None) -> Work | None:
    """Predict what adding up numbers by group, or by unit and group, takes; None if the number of rows is not declared.

    Every row may be a pair of unit and group of its own. With `memory`, work that would take more is split.
    """
    rows = expected_rows(rel)
    if rows is None:
        return None
    if not by_unit:
        return Work(rows, _LEAST, 1, rows * _READ * (1 + numbers))
    whole = _LEAST + rows * (_PAIR + _NUMBER * numbers + _KEY * keys) // 1_000_000
    parts = 1
    if memory is not None and _separable(rel):
        parts = min(MAX_PARTS, -(-whole // max(1, int(memory * _SHARE))))
    return Work(rows, -(-whole // parts), parts, rows * (_READ * (parts + numbers) + _GATHER * (1 + keys)))


def _separable(rel: Rel) -> bool:
    """Tell whether the rows of a unit can be selected where they are read: one scan, which reads the privacy ID."""
    private = [scan for scan in scans(rel) if scan.table.unit is not None]
    if len(private) != 1 or private[0].joined:
        return False
    unit, others = private[0].table.unit, private[0].table.others
    return unit is not None and not others and unit.column is not None and unit.path is None and unit.period is None


def part(rel: Rel, place: int, count: int) -> Rel:
    """Return a relation over the rows of some of the units: one part of so many.

    Theorem (Statements in parts). Let a statement give for each cell a sum over the units, each of which adds what its
    own rows decide. Then the sums of its parts add up to its own. So what one unit changes is what it changes there.
    Proof    Each unit is in one part, by the hash of its ID in canonical form, with all of its rows, in whatever order
             the engine reads them; which groups and rows of it are kept does not depend on other units.
    Assumes  `_separable`, and that no part is clamped to 64 bits, unless a neighbor has one unit more or less: then
             clamping the sum of the parts before each is added does not move neighbors further apart.
    Tested   tests/sql/test_unit_parts.py::test_parts_add_up_to_the_whole
    """
    return _map_scans(rel, lambda scan: scan if scan.table.unit is None else replace(scan, part=(place, count)))


def _map_scans(rel: Rel, change: Callable[[Scan], Scan]) -> Rel:
    match rel:
        case Scan():
            return change(rel)
        case Filter() | Project() | PerUnit() | UnitWindow() | Truncate():
            return replace(rel, input=_map_scans(rel.input, change))
        case Join():
            return replace(rel, left=_map_scans(rel.left, change), right=_map_scans(rel.right, change))
        case Union():
            return replace(rel, inputs=tuple(_map_scans(each, change) for each in rel.inputs))
