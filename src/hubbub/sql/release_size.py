"""Check the size of a release before the charge.

A release is stored as JSON in one row of the ledger's database and is read as a whole on replay. Its size is therefore
limited, and the check depends only on the query and the declarations.
"""

import json
from collections.abc import Iterable, Sequence

from hubbub.core.schema import Kind
from hubbub.errors import QueryError
from hubbub.sql.expressions import Col, facts
from hubbub.sql.plan import Plan
from hubbub.sql.postprocess_cost import MAX_STEPS, query_cost, too_expensive

#: Default maximum number of values (rows times columns) in a release.
MAX_CELLS = 1_000_000
#: Maximum average number of bytes per value. A number with both ends of its interval takes at most 78.
PER_CELL = 128
#: Bytes of a number with the ends of its interval and three commas.
NUMBER = 78


def check(plan: Plan, *, most: int) -> None:
    """Raise an error if the release of a plan could be too large, or its post-processing too much work.

    If groups are selected privately, their number is not known yet. A release that turns out too large then fails in
    `hubbub.accounting.ledger.Ledger.record`.
    """
    query = plan.query
    weight = query_cost(query)
    variants = 2 + 2 * len(plan.measures)
    if weight.length * max(1, plan.size) * variants > MAX_STEPS:
        raise too_expensive()
    rows = plan.size if query.limit is None else min(plan.size, query.limit)
    known = {key.name: facts(key.expr).values for key in query.keys}
    widths = {name: labels_width(values) for name, values in known.items() if values is not None}
    columns = [
        NUMBER
        if expr.kind is not Kind.TEXT
        else widths[expr.name]
        if isinstance(expr, Col) and expr.name in widths
        else weight.width
        for _, expr in query.select
    ]
    refuse(rows, columns, most=most)


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
