"""`hubbub init`: a first hubbub.yaml from names and types of columns, with blanks that only people can fill."""

import json
import re
from collections.abc import Sequence

from hubbub.core.schema import Kind
from hubbub.engines.base import Field, DataSource
from hubbub.errors import ConfigError

#: What marks a blank, for the eye and for search.
BLANK = "# <- fill in"

_HEAD = """\
# hubbub.yaml: who is protected, what may be asked, and how much may be learned in total.
# {made}
# Fill in what is marked "<- fill in", then run: hubbub check
version: 1

datasets:
"""
_UNSEEN = "Made from the names and types of columns alone; no value was read."
_GUESSED = "Made from the names of columns; types of CSV columns were guessed from values (check them)."

_UNIT = """\
    # Who is protected? Left empty on purpose: only you know whose rows these are.
    #   unit: row                        each row by itself, where nobody has more than one
    #   unit: {{column: {example}, groups: 5, rows: 10}}
    #         everything of one {example}; it counts in at most 5 groups of a query, with at most 10 rows in each;
    #         entity: patient, the same word in several tables, says that equal values are one person: needed for joins
    unit:                 {blank}
    relation: add_remove  # hides whether somebody is in the data; replace hides only what their data is
    columns:
      # What is not listed cannot be asked about. A listed column can be filtered by; moreover
      #   bounds: [0, 110]         allows sums and averages: values outside are clamped, so choose them without a look
      #   values: [North, South]   allows GROUP BY; add other: Elsewhere for all that is not in the list
      #   hidden: true             forbids every use
"""
_TYPES = "      #   type: …                  integer, real, text, boolean, date or timestamp: a CSV file does not say\n"

_BUDGET = """\
    # What may be learned in total, by everybody and for ever. Somebody who is 50/50 about one person can get to
    # at most 73 % at ε = 1, 95% at ε = 3, 99.8 % at ε = 6.
    budget:
      epsilon:            {blank}
      # delta: 1e-9       allows Gaussian noise and undeclared keys; far below 1 / (number of people)
      # per_query: 0.5    the most for one query
"""

_FOOT = """\

# Who may ask. Each has a cap of their own; a cap on a group holds for its members together.
analysts:
  {analyst}:
"""


def name_of(place: DataSource) -> str:
    """Give a dataset the name of its file or table, as far as that is a name.

    >>> from pathlib import Path
    >>> name_of(Place("csv", Path("/data/Visits 2024.csv")))
    'visits_2024'
    """
    name = (place.table or "").rpartition(".")[2] or place.path.stem
    text = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower()
    return text or "data"


def template(tables: Sequence[tuple[str, str, tuple[Field, ...]]], *, analyst: str, guessed: bool) -> str:
    """Write the file for (name, source, fields) of each table."""
    names = [name for name, _, _ in tables]
    if len(set(names)) < len(names):
        raise ConfigError("HB410", "two of these files would get the same name.", "Rename one, or init them apart.")
    parts = [_HEAD.format(made=_GUESSED if guessed else _UNSEEN)]
    for name, source, fields in tables:
        parts.append(f"  {name}:\n    source: {_quoted(source)}\n")
        parts.append(_UNIT.format(example=_likely_unit(fields), blank=BLANK))
        untyped = any(field.kind is None and field.type.startswith("text") for field in fields)
        parts += [_TYPES] if untyped else []
        width = max(len(_quoted(field.name)) for field in fields)
        parts += [_column(field, width) for field in fields]
        parts.append(_BUDGET.format(blank=BLANK))
    parts.append(_FOOT.format(analyst=analyst))
    parts += [f"    {name}: {{epsilon: }}  {BLANK}\n" for name in names]
    return "".join(parts)


def _column(field: Field, width: int) -> str:
    label = f"      {_quoted(field.name)}:".ljust(width + 8)
    kind = field.kind
    if kind is None and not field.type.startswith("text"):
        return f"      # {_quoted(field.name)}: {field.type} cannot be asked about\n"
    if field.type.startswith("text"):
        fact = "bounds" if kind is not None and kind.numeric else "values"
        return f"{label} {{type: {(kind or Kind.TEXT).value}, {fact}: }}\n"
    if kind is not None and (kind.numeric or kind is Kind.TEXT):
        return f"{label} {{{'bounds' if kind.numeric else 'values'}: }}  # {kind.value}\n"
    return f"{label} {{}}  # {kind.value if kind else ''}\n"


def _likely_unit(fields: tuple[Field, ...]) -> str:
    """Choose the column for the example in the comment, by name alone."""
    likely = [
        field.name for field in fields if re.search(r"(^|_)(id|person|patient|user|customer)", field.name.lower())
    ]
    return _quoted((likely or [fields[0].name])[0])


def _quoted(text: str) -> str:
    return (
        text if re.fullmatch(r"[A-Za-z_][\w./-]*", text, re.ASCII) and text.lower() not in _WORDS else json.dumps(text)
    )


_WORDS = {"yes", "no", "on", "off", "true", "false", "null", "y", "n"}
