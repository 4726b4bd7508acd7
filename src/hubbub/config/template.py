"""Write the first hubbub.yaml for `hubbub init` from column names and types, with blanks for the owner to fill in."""

import json
import re
from collections.abc import Sequence

from hubbub.core.schema import Kind
from hubbub.engines.base import DataSource, Field
from hubbub.errors import ConfigError

#: Marks each blank.
BLANK = "# <- fill in"

_HEAD = """\
# hubbub.yaml: who is protected, what analysts can query, and the total privacy budget.
# {origin}
# Fill in the blanks marked "<- fill in", then run: hubbub check
version: 1

datasets:
"""
_UNSEEN = "Written from column names and types; no values were read."
_GUESSED = "Written from column names. The types of CSV columns were guessed from values: check them."

_UNIT = """\
    # Who is protected? Blank on purpose: only you know which rows belong to the same person.
    #   unit: row                        each row, if no person has more than one
    #   unit: {{column: {example}, rows: auto}}
    #         all rows of one {example}; each query finds privately how many of them to use.
    #   unit: {{column: {example}, groups: 5, rows: 10}}
    #         a query uses at most 10 of them in each of at most 5 groups: more exact, if these numbers are right.
    #         `hubbub profile` recommends them, once the rest of this file is filled in. If nobody has more than 12 rows
    #         in all groups together, add rows_total: 12: counts by group are then more exact.
    #         To join tables, add the same entity to each, such as entity: patient. Equal values are then one patient.
    unit:                 {blank}
    relation: add_remove  # hides whether a person is in the data; replace hides only the person's values
    columns:
      # Analysts can use only the columns listed here. A listed column can be used in filters. In addition,
      #   bounds: [0, 110]         allows sums and averages; values outside are clamped. Do not read bounds off the data
      #   bounds: auto             each query finds them privately, for a quarter of its ε
      #   values: [North, South]   allows GROUP BY; add other: Elsewhere for all values that are not listed
      #   nullable: true           gives NULL a group of its own in GROUP BY
      #   required: true           says that no value is NULL
      #   hidden: true             forbids every use
"""
_TYPES = "      #   type: …                  integer, real, text, boolean, date or timestamp; CSV files have no types\n"

_BUDGET = """\
    # The total privacy budget, for all analysts and for the lifetime of the data. Someone who is 50% sure of a fact
    # about one person can end up at most 73.2% sure at ε = 1, 95.3% at ε = 3, and 99.8% at ε = 6.
    budget:
      epsilon:            {blank}
      # delta: 1e-9       allows Gaussian noise and undeclared keys; keep it far below 1 / (number of people)
      # per_query: 0.5    the maximum for one query
"""

_FOOT = """\

# Who can query, and how much. Each analyst has a cap; a cap on a group limits its members together.
analysts:
  {analyst}:
"""


def dataset_name(place: DataSource) -> str:
    """Derive the name of a dataset from its file or table.

    >>> from pathlib import Path
    >>> dataset_name(DataSource("csv", Path("/data/Visits 2024.csv")))
    'visits_2024'
    """
    name = (place.table or "").rpartition(".")[2] or place.path.stem
    text = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower()
    return text or "data"


def template(tables: Sequence[tuple[str, str, tuple[Field, ...]]], *, analyst: str, guessed: bool) -> str:
    """Write a hubbub.yaml for tables, each given as (name, source, fields)."""
    names = [name for name, _, _ in tables]
    if len(set(names)) < len(names):
        raise ConfigError(
            "HB410",
            "Two of these files would get the same dataset name.",
            "Rename one of them, or run hubbub init for each.",
        )
    parts = [_HEAD.format(origin=_GUESSED if guessed else _UNSEEN)]
    for name, source, fields in tables:
        parts.append(f"  {name}:\n    source: {quoted(source)}\n")
        parts.append(_UNIT.format(example=_likely_unit(fields), blank=BLANK))
        untyped = any(field.kind is None and field.untyped for field in fields)
        parts += [_TYPES] if untyped else []
        width = max(len(quoted(field.name)) for field in fields)
        parts += [_column(field, width) for field in fields]
        parts.append(_BUDGET.format(blank=BLANK))
    parts.append(_FOOT.format(analyst=analyst))
    parts += [f"    {name}: {{epsilon: }}  {BLANK}\n" for name in names]
    return "".join(parts)


def _column(field: Field, width: int) -> str:
    label = f"      {quoted(field.name)}:".ljust(width + 8)
    kind = field.kind
    if kind is None and not field.untyped:
        if field.element is not None:
            return f"      # {quoted(field.name)}: {{elements: 8}}  # {field.type}: the most elements of a list\n"
        return f"      # {quoted(field.name)}: {field.type} is not supported\n"
    if field.untyped:
        fact = "bounds: auto" if kind is not None and kind.numeric else "values: "
        return f"{label} {{type: {(kind or Kind.TEXT).value}, {fact}}}\n"
    if kind is not None and (kind.numeric or kind is Kind.TEXT):
        return f"{label} {{{'bounds: auto' if kind.numeric else 'values: '}}}  # {kind.value}\n"
    return f"{label} {{}}  # {kind.value if kind else ''}\n"


def _likely_unit(fields: tuple[Field, ...]) -> str:
    """Choose the column for the example in the comment by its name."""
    likely = [
        field.name
        for pattern in (r"(^|[_ ])(id|person|patient|user|customer|member)", r"id$")
        for field in fields
        if re.search(pattern, field.name.lower())
    ]
    return quoted((likely or [fields[0].name])[0])


def quoted(text: str) -> str:
    """Quote a text for YAML where it needs quotes."""
    return (
        text
        if re.fullmatch(r"[A-Za-z_][\w./-]*", text, re.ASCII) and text.lower() not in _WORDS
        else json.dumps(text, ensure_ascii=not text.isprintable())
    )


_WORDS = {"yes", "no", "on", "off", "true", "false", "null", "y", "n"}
