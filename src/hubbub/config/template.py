"""`hubbub init`: a first hubbub.yaml from names and types of columns, with blanks that only people can fill."""

import json
import re
from collections.abc import Sequence

from hubbub.core.schema import Kind
from hubbub.engines.base import Field, Place
from hubbub.errors import ConfigError

#: What marks a blank, for the eye and for search.
BLANK = "# <- fill in"

_HEAD = """\
# hubbub.yaml: who is protected, what may be asked, and how much may be learned in total.
# Made from column names and types alone; no value was read. Fill in what is marked "<- fill in",
# then run: hubbub check
version: 1

datasets:
"""

_UNIT = f"""\
    # Who is protected? Left empty on purpose: only you know whose rows these are.
    #   unit: row                                 each row by itself, where nobody has more than one
    #   unit: {{column: {{example}}, groups: 5, rows: 10}}
    #         everything of one {{example}}; it counts in at most 5 groups of a query, with at most 10 rows in each
    unit:                 {BLANK}
    relation: add_remove  # somebody more or fewer in the data; or replace: somebody's data changed
"""

_BUDGET = f"""\
    # What may be learned in total, by everybody and for ever. Somebody who is 50/50 about one person can get to
    # at most 73 % at ε = 1, 95 % at ε = 3, 99.8 % at ε = 6.
    budget:
      epsilon:            {BLANK}
      # delta: 1e-9       allows Gaussian noise and undeclared keys; far below 1 / (number of people)
      # per_query: 0.5    the most for one query
"""

_FOOT = """\

# Who may ask. Each has a cap of their own; a cap on a group holds for its members together.
analysts:
  analyst:
"""


def name_of(place: Place) -> str:
    """Give a data set the name of its file or table, as far as that is a name.

    >>> from pathlib import Path
    >>> name_of(Place("csv", Path("/data/Visits 2024.csv")))
    'visits_2024'
    """
    text = re.sub(r"\W+", "_", place.table or place.path.stem, flags=re.ASCII).strip("_").lower()
    return text or "data"


def template(tables: Sequence[tuple[str, str, tuple[Field, ...]]]) -> str:
    """Write the file for (name, source, fields) of each table."""
    names = [name for name, _, _ in tables]
    if len(set(names)) < len(names):
        raise ConfigError("HB410", "two of these files would get the same name.", "Rename one, or init them apart.")
    parts = [_HEAD]
    for name, source, fields in tables:
        parts.append(f"  {name}:\n    source: {_quoted(source)}\n")
        parts.append(_UNIT.format(example=_likely_unit(fields)))
        parts.append("    columns:             # what is not listed here cannot be asked about\n")
        width = max(len(_quoted(field.name)) for field in fields) + 1
        parts += [_column(field, width) for field in fields]
        parts.append(_BUDGET)
    parts.append(_FOOT)
    parts += [f"    {name}: {{epsilon: }}  {BLANK}\n" for name in names]
    return "".join(parts)


def _column(field: Field, width: int) -> str:
    label = f"      {_quoted(field.name)}:".ljust(width + 7)
    kind = field.kind
    if kind is None and not field.type.startswith("text"):
        return f"      # {_quoted(field.name)} has the type {field.type}, which cannot be asked about\n"
    if kind is None:
        choices = "integer, real, text, boolean, date or timestamp"
        return f"{label} {{type: text}}  {BLANK}: {choices}; numbers: bounds: [0, 100]; keys: values: [a, b]\n"
    if kind.numeric:
        return f"{label} {{bounds: }}  {BLANK}: [smallest, largest] possible value, to allow sums ({kind.value})\n"
    if kind is Kind.TEXT:
        return f"{label} {{values: }}  {BLANK}: [all, possible, values], to group by it; or hidden: true (text)\n"
    return f"{label} {{}}  # {kind.value}\n"


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
