"""Restrict a scan to the blocks that a query is charged for.

Tested in tests/sql/test_blocks.py.
"""

from datetime import date, datetime

from hubbub.core.blocks import start
from hubbub.core.schema import Column, Kind, Table
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.expressions import Col, FunctionCall, Literal


def block_conditions(table: Table, dialect: Dialect) -> list[str]:
    """Write the condition that a row lies in a block that is read; none for a table without blocks.

    Theorem (Scans by block). The rows of a scan are rows whose time lies in one of the blocks in `read`. So whatever is
    computed from scans is a function of the rows in these blocks, and a row without a time, or with a time in no block
    that is read, changes nothing, whatever the query says.
    Proof    The condition is part of the scan, before rows of a unit are counted, cut or joined. It compares the time
             as every other part of a query reads it (`scanned`, in UTC) with the first moment of each range of blocks
             and with that after its last. The ranges are disjoint, and so are the blocks. A comparison with NULL is not
             true. Where a person's period is the unit and lies in one block, all rows of a unit pass or none does: its
             period is read from the same time, and ends of blocks are ends of periods.
    Assumes  every read of a private table is a scan that `render` writes: no other text names a private table.
    Charges  nothing by itself: `read` is what is charged.
    Tested   tests/sql/test_blocks.py::test_a_scan_reads_exactly_the_rows_of_its_blocks
             tests/sql/test_blocks.py::test_every_statement_of_every_analysis_reads_only_the_blocks_that_are_charged
    """
    blocks = table.blocks
    if blocks is None:
        return []
    if blocks.read is None:
        raise AssertionError("a scan of a table with blocks says which of them it reads")
    kind = next(column.kind for column in table.columns if column.name == blocks.column)
    time = dialect.scanned(Column(blocks.column, kind))
    col = Col(blocks.column, kind)
    ranges = []
    for first, last in blocks.read.ranges:
        ends = _moment(start(blocks.by, first), kind), _moment(start(blocks.by, last + 1), kind)
        tests = []
        for comparison, end in zip(("ge", "lt"), ends, strict=True):
            call = FunctionCall(comparison, (col, Literal(end, kind)), Kind.BOOLEAN)
            tests.append(dialect.spelling(comparison)(call, [time, dialect.literal(end, kind)]))
        ranges.append(f"({' AND '.join(tests)})")
    return [f"({' OR '.join(ranges)})" if ranges else "FALSE"]


def _moment(day: date, kind: Kind) -> date:
    return datetime(day.year, day.month, day.day) if kind is Kind.TIMESTAMP else day
