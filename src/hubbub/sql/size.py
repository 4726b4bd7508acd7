"""How large a release can become, told before the charge: the stores of the ledger take no more than a bounded blob.

A release is kept whole, as JSON, in one row of the ledger's database; whoever asks for it again reads it whole. So its
size is a matter of everybody's, and is bounded by the query and the declarations alone.
"""

import json
from collections.abc import Iterable, Sequence

from hubbub.core.schema import Kind
from hubbub.errors import QueryError
from hubbub.sql.expressions import Col, facts
from hubbub.sql.plan import Plan
from hubbub.sql.released_cost import MOST_STEPS, too_heavy, weigh

#: Values (rows times columns) of a release, unless hubbub.yaml says otherwise.
MOST_CELLS = 1_000_000
#: Bytes for each value that may be released: a number with both ends of its interval takes 78 at most.
PER_CELL = 128
#: Bytes of a number with the ends of its interval, each with a comma.
NUMBER = 78


def check(plan: Plan, *, most: int) -> None:
    """Refuse a plan whose release could be too large, or whose answers are too much work, before it is charged.

    How many groups are discovered is not known yet. A release that turns out too large then fails alone: see
    `hubbub.accounting.ledger.Ledger.record`.
    """
    query = plan.query
    weight = weigh(query)
    variants = 2 + 2 * len(plan.measures)
    if weight.length * max(1, plan.size) * variants > MOST_STEPS:
        raise too_heavy()
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
    """Refuse so many rows of columns of these widths, in bytes, where `most` values may be released."""
    cells, size = rows * len(widths), rows * sum(widths)
    if cells > most:
        raise QueryError(
            "HB549",
            f"The release would have {cells:,} values ({rows:,} rows of {len(widths)} columns); at most "
            f"{most:,} are allowed.",
            _REMEDY,
        )
    if size > most * PER_CELL:
        raise QueryError(
            "HB549", f"The release could have {size:,} bytes; at most {most * PER_CELL:,} are allowed.", _REMEDY
        )


def labels_width(labels: Iterable[object]) -> int:
    """Give the bytes of the longest label of a column in JSON, with its comma."""
    texts = (json.dumps(label, ensure_ascii=False) for label in labels if isinstance(label, str))
    return max((len(text.encode(errors="replace")) + 1 for text in texts), default=NUMBER)


_REMEDY = "Ask for fewer groups, rows or columns, or ask the owner to raise max_cells in hubbub.yaml."
