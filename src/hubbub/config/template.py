"""Write the first hubbub.yaml: with blanks for `hubbub init`, or with what the owner chose on the set-up page.

Tested in tests/config/test_template.py.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from hubbub.config.choices import Choices, ColumnChoice, TableChoice
from hubbub.core.schema import Kind
from hubbub.engines.base import DataSource, Field
from hubbub.errors import ConfigError

#: Marks each blank.
BLANK = "# <- fill in"

_HEAD = """\
# hubbub.yaml: who is protected, what analysts can query, and the total privacy budget.
# {origin}
# {task}
version: 1

datasets:
"""
_UNSEEN = "Written from column names and types; no values were read."
_GUESSED = "Written from column names. The types of CSV columns were guessed from values: check them."
_CHOSEN = "Written on the set-up page. The types of CSV columns were guessed from values: check them."
_FILL = 'Fill in the blanks marked "<- fill in", then run: hubbub check'
_EDIT = "Edit it here or on the page Administration. To check what you wrote, run: hubbub check"

_UNIT = """\
    # Who is protected? {why}
    #   unit: row                        each row, if no person has more than one
    #   unit: {{column: {example}, rows: auto}}
    #         all rows of one {example}; each query finds privately how many of them to use.
    #   unit: {{column: {example}, groups: 5, rows: 10}}
    #         a query uses at most 10 of them in each of at most 5 groups: more exact, if these numbers are right.
    #         `hubbub profile` recommends them, once the rest of this file is filled in. If nobody has more than 12 rows
    #         in all groups together, add rows_total: 12: counts by group are then more exact.
    #         To join tables, add the same entity to each, such as entity: patient. Equal values are then one patient.
    unit:                 {unit}
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
      epsilon:            {epsilon}
      {delta}allows Gaussian noise and undeclared keys; keep it far below 1 / (number of people)
      {per_query}the maximum for one query
"""
_PUBLIC = """\
    # This table is about nobody: everybody who can query sees all of its rows, without noise.
    public: true
"""

_FOOT = """\

# Who can query, and how much. Each analyst has a cap; a cap on a group limits its members together.
analysts:
  {analyst}:{empty}
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


def template(
    tables: Sequence[tuple[str, str, tuple[Field, ...]]],
    *,
    analyst: str,
    guessed: bool,
    choices: Choices | None = None,
) -> str:
    """Write a hubbub.yaml for tables, each given as (name, source, fields); what `choices` has is filled in."""
    names = [name for name, _, _ in tables]
    if len(set(names)) < len(names):
        raise ConfigError(
            "HB410",
            "Two of these files would get the same dataset name.",
            "Rename one of them, or run hubbub init for each.",
        )
    origin = _CHOSEN if choices is not None else _GUESSED if guessed else _UNSEEN
    parts = [_HEAD.format(origin=origin, task=_FILL if choices is None else _EDIT)]
    chosen: Choices = choices or {}
    for name, source, fields in tables:
        parts.append(f"  {quoted(name)}:\n    source: {quoted(source)}\n")
        parts.append(_table(fields, chosen.get(name)))
    private = [name for name in names if name not in chosen or not chosen[name].public]
    parts.append(_FOOT.format(analyst=quoted(analyst), empty="" if private else " {}"))
    parts += [f"    {quoted(name)}: {{epsilon: {_cap(chosen.get(name))}\n" for name in private]
    return "".join(parts)


def _table(fields: tuple[Field, ...], choice: TableChoice | None) -> str:
    """Write what follows the source of a table."""
    untyped = any(field.kind is None and field.untyped for field in fields)
    width = max(len(quoted(field.name)) for field in fields)
    columns = {} if choice is None else choice.columns
    if choice is not None and choice.public:
        # the types of a CSV file are the only thing to say about a public table
        plain = [(field, replace(columns[field.name], use="filter")) for field in fields if field.untyped]
        typed = [_column(field, width, column) for field, column in plain]
        return "".join([_PUBLIC, "    columns:\n" if typed else "", *typed])
    listed = [_column(field, width, columns.get(field.name)) for field in fields]
    why = "Only you know which rows belong to the same person."
    unit = _UNIT.format(
        example=_likely_unit(fields),
        why=f"Blank on purpose: o{why[1:]}" if choice is None else why,
        unit=BLANK if choice is None else _unit(choice),
    )
    budget = _BUDGET.format(
        epsilon=BLANK if choice is None else choice.epsilon,
        delta=_setting("delta", None if choice is None else choice.delta, "1e-9"),
        per_query=_setting("per_query", None if choice is None else choice.per_query, "0.5"),
    )
    return "".join([unit, _TYPES if untyped else "", *listed, budget])


def _unit(choice: TableChoice) -> str:
    if choice.column is None:
        return "row"
    rows = "rows: auto" if choice.rows is None else f"groups: {choice.groups or 1}, rows: {choice.rows}"
    return f"{{column: {quoted(choice.column)}, {rows}}}"


def _setting(name: str, value: str | None, example: str) -> str:
    """Write a setting with a comment after it; one that was not chosen is itself in the comment."""
    return f"# {name}: {example}".ljust(20) if value is None else f"{name}: {value}".ljust(20) + "# "


def _cap(choice: TableChoice | None) -> str:
    return f"}}  {BLANK}" if choice is None else f"{choice.cap}}}"


def _column(field: Field, width: int, choice: ColumnChoice | None = None) -> str:
    label = f"      {quoted(field.name)}:".ljust(width + 8)
    kind = field.kind
    if kind is None and not field.untyped:
        if field.element is not None:
            return (
                f"      # {quoted(field.name)}: {{elements: 8}}  # {_line(field.type)}: the most elements of a list\n"
            )
        return f"      # {quoted(field.name)}: {_line(field.type)} is not supported\n"
    if choice is not None:
        facts = [f"type: {choice.kind.value}"] if field.untyped else []
        note = "" if field.untyped else f"  # {choice.kind.value}"
        return f"{label} {{{', '.join([*facts, *_use(choice)])}}}{note}\n"
    if field.untyped:
        fact = "bounds: auto" if kind is not None and kind.numeric else "values: "
        return f"{label} {{type: {(kind or Kind.TEXT).value}, {fact}}}\n"
    if kind is not None and (kind.numeric or kind is Kind.TEXT):
        return f"{label} {{{'bounds: auto' if kind.numeric else 'values: '}}}  # {kind.value}\n"
    return f"{label} {{}}  # {kind.value if kind else ''}\n"


def _use(choice: ColumnChoice) -> list[str]:
    """Write what analysts may do with a column."""
    written = ", ".join(value if choice.kind.numeric else quoted(value) for value in choice.values)
    match choice.use:
        case "hidden":
            return ["hidden: true"]
        case "auto":
            return ["bounds: auto"]
        case "bounds" | "values":
            return [f"{choice.use}: [{written}]"]
        case _:
            return []


def _line(text: str) -> str:
    """Keep a text within its comment: names of types and of their fields come from whoever made the table."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


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
