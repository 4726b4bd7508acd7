"""Check the size of a release, and the memory that computing it takes, before the charge.

A release is stored in one row of the ledger's database and is read as a whole on replay: a short one as JSON, a long
one as compressed columns. Its size is therefore limited. So is the memory of its columns while they are computed,
because a run that ends for lack of memory has been charged. The checks depend only on the query, the declarations and
the machine.

Tested in tests/sql/test_release_size.py.
"""

import json
from collections.abc import Iterable, Sequence

from hubbub.core import machine
from hubbub.core.schema import Kind
from hubbub.errors import QueryError
from hubbub.sql.expressions import Col, facts
from hubbub.sql.plan import Plan
from hubbub.sql.postprocess_cost import MAX_STEPS, query_cost, too_expensive

#: Default maximum number of values (rows times columns) in a release.
MAX_CELLS = 30_000_000
#: Default and maximum number of values in a release that is stored as JSON.
SHORT_CELLS, JSON_CELLS = 1_000_000, 3_900_000
#: Answers of queries with more rows than this are stored as columns.
LONG = 20_000
#: Maximum bytes of the columns of a release: the ledger takes 500,000,000 bytes, and base64 and framing add 40%.
COLUMN_BYTES = 350_000_000
#: Up to this many bytes, the columns of an answer have sampling errors and joint intervals.
FULL_BYTES = 250_000_000
#: The part of the machine's memory that the columns of a query may take while they are computed.
_MEMORY = 0.3
#: Maximum average number of bytes per value. A number with both ends of its interval takes at most 78.
PER_CELL = 128
#: Bytes of a number with the ends of its interval and three commas.
NUMBER = 78


def json_cells(most: int) -> int:
    """Return how many values a release may have that is stored as JSON, where others may have `most`."""
    return SHORT_CELLS if most == MAX_CELLS else min(most, JSON_CELLS)


def check(plan: Plan, *, most: int, joint: bool = False) -> None:
    """Raise an error if the release of a plan could be too large, or its post-processing too much work or memory.

    If groups are selected privately, their number is not known yet. A release that turns out too large then fails in
    `hubbub.accounting.ledger.Ledger.record`.
    """
    query = plan.query
    weight = query_cost(query)
    variants = 2 + 2 * len(plan.measures)
    if weight.length * max(1, plan.size) * variants > MAX_STEPS:
        raise too_expensive()
    rows = plan.size if query.limit is None else min(plan.size, query.limit)
    known = {key.name: facts(key.expr).values for key in query.keys if key.expr.kind is Kind.TEXT}
    widths = {name: labels_width(values) for name, values in known.items() if values is not None}
    columns = [
        NUMBER
        if expr.kind is not Kind.TEXT
        else widths[expr.name]
        if isinstance(expr, Col) and expr.name in widths
        else weight.width
        for _, expr in query.select
    ]
    if rows <= LONG or query.after is not None:
        refuse(rows, columns, most=json_cells(most))
        _check_memory(plan)
        return
    refuse(rows, [0] * len(columns), most=most)
    keys = {key.name for key in query.keys}
    noisy = sum(not (isinstance(expr, Col) and expr.name in keys) for _, expr in query.select)
    full = has_all_parts(rows, noisy)
    texts = sum(width for (_, expr), width in zip(query.select, columns, strict=True) if expr.kind is Kind.TEXT)
    size = rows * (8 * len(columns) + texts + (8 + 40 * noisy if full else 16 * noisy))
    if size > COLUMN_BYTES or (joint and not full):
        what = f"The release could have {size:,} bytes; the maximum is {COLUMN_BYTES:,}."
        if size <= COLUMN_BYTES:
            what = f"Intervals that hold for the whole answer at once are not kept for {rows:,} rows."
        raise QueryError("HB549", what, _REMEDY)
    _check_memory(plan)


def has_all_parts(rows: int, noisy: int) -> bool:
    """Tell whether a long answer keeps sampling errors and joint intervals, by its rows and its noisy columns."""
    return rows * (8 + 56 * noisy) <= FULL_BYTES


def _check_memory(plan: Plan) -> None:
    """Raise an error if the columns of a query could take too much of the machine's memory.

    Each measure, key and output is in memory several times while estimates and intervals are computed: numbers of 8
    bytes, counted from `benchmarks/many_groups.py`. Histograms of declared cells are there twice.
    """
    copies = 6 * len(plan.measures) + 12 * len(plan.query.select) + 4 * len(plan.query.keys)
    copies += 2 * sum(each.count for each in plan.histograms) if plan.threshold is None else 0
    needed, there = plan.size * copies * 8 // 1_000_000, int(_MEMORY * machine.memory())
    if needed > there:
        raise QueryError(
            "HB549",
            f"The {plan.size:,} groups of this query could take {needed:,} MB of memory; this machine allows "
            f"{there:,} MB.",
            "Group by fewer keys or by a coarser expression, or select fewer columns.",
        )


def refuse(rows: int, widths: Sequence[int], *, most: int) -> None:
    """Raise an error if a release with these rows and column widths (in bytes) is too large for `most` values."""
    cells, size = rows * len(widths), rows * sum(widths)
    if cells > most:
        raise QueryError(
            "HB549",
            f"The release would have {cells:,} values ({rows:,} rows of {len(widths)} columns); the maximum is "
            f"{most:,}.",
            _REMEDY,
        )
    if size > most * PER_CELL:
        raise QueryError(
            "HB549", f"The release could have {size:,} bytes; the maximum is {most * PER_CELL:,}.", _REMEDY
        )


def labels_width(labels: Iterable[object]) -> int:
    """Return the number of bytes of a column's longest label in JSON, with its comma."""
    texts = (json.dumps(label, ensure_ascii=False) for label in labels if isinstance(label, str))
    return max((len(text.encode(errors="replace")) + 1 for text in texts), default=NUMBER)


_REMEDY = "Select fewer groups, rows or columns, or ask the data owner to raise max_cells in hubbub.yaml."
