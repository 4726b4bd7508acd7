"""Dataset page: privacy guarantee, columns, sample rows, supported SQL, and client snippets.

Tested in tests/server/test_pages.py.
"""

import json
from collections.abc import Collection
from fractions import Fraction
from typing import Any

from starlette.responses import Response

from hubbub.answers import profile_view
from hubbub.answers.budget import BlockState
from hubbub.answers.profile import Profile
from hubbub.config.summary import column_uses
from hubbub.core.numbers import brief, round_down
from hubbub.core.schema import Column, Kind, Table, Value
from hubbub.semantics.odds import EVEN, certainty
from hubbub.server.pages.frame import Visit, drawing

#: Supported SQL. Tests run each of them.
FUNCTIONS = (
    ("COUNT(*), COUNT(x)", "number of rows, or of rows where x is not null"),
    ("COUNT(DISTINCT unit)", "number of privacy units; the most accurate count"),
    ("SUM(x), AVG(x)", "of a column with declared bounds"),
    ("VAR_POP, STDDEV_POP, COVAR_POP, CORR, REGR_SLOPE", "of columns with declared bounds"),
    ("MEDIAN(x), QUANTILE_CONT(x, 0.9), MIN(x), MAX(x)", "selected privately among the values within the bounds"),
    ("WHERE, GROUP BY, HAVING, ORDER BY, LIMIT", "group by declared values, numeric buckets, or parts of a date"),
    ("JOIN", "with public tables, or on the privacy unit"),
)
_MAX_VALUES = 8


def show(visit: Visit) -> Response:
    """Show one dataset."""
    service, principal = visit.service, visit.principal
    name = visit.request.path_params["name"]
    described = service.catalog.describe(principal, name)
    table = Table.from_json(described)
    columns = [column for column in table.columns if not column.hidden]
    caps: list[dict[str, str]] = []
    blocks: list[dict[str, str]] = []
    for view in service.catalog.budget(principal) if principal.role == "analyst" else ():
        if view.dataset == name:
            blocks += [block_line(block) for block in view.blocks]
            for state in view.caps:
                delta = f", δ = {brief(state.delta)}" if state.delta else ""
                sure = certainty(EVEN, epsilon=state.epsilon, delta=state.delta, word=" sure")
                text = (
                    f"ε = {brief(state.epsilon)}{delta}: someone who is 50% sure of a fact about one person can"
                    f" become at most {sure}"
                )
                caps.append({"who": view.describe_cap(state), "text": text})
    return visit.render(
        "dataset.html",
        table=table,
        protected=described["protected"],
        neighbors=described["neighbors"],
        rows=described["rows"],
        caps=caps,
        blocks=blocks,
        columns=[
            {"name": each.name, "kind": each.kind.value, "facts": facts(each) or "any", "uses": column_uses(each)}
            for each in columns
        ],
        disabled=described["disabled"],
        profile=_profile(described["profile"]),
        samples=[[_sample(each, place) for each in columns] for place in range(4)],
        functions=FUNCTIONS,
        snippets=_snippets(visit, table),
        ask=principal.role == "analyst",
    )


def block_line(block: BlockState) -> dict[str, str]:
    """Return the budget of one block, as text."""
    return {
        "name": block.name,
        "spent": "?" if block.spent is None else brief(block.spent),
        "left": "closed" if block.closed else round_down(block.left),
        "more": "" if block.more is None else f"{block.more:,}",
    }


def _profile(form: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the tables and the chart of a published profile."""
    if form is None:
        return None
    profile = Profile.from_json(form)
    return {
        "charge": profile.charge,
        "version": profile.version,
        "summary": profile_view.summary(profile),
        "chart": drawing(profile_view.chart(profile)) if profile.model["unit"] is not None else "",
        "unit": profile.model["unit"],
        "tables": [
            (heading, head, rows)
            for heading, head, rows in (
                (profile_view.row_bounds_title(profile), profile_view.ROW_HEADINGS, profile_view.row_bounds(profile)),
                ("Bounds on groups", profile_view.GROUP_HEADINGS, profile_view.group_bounds(profile)),
                ("Columns", profile_view.COLUMN_HEADINGS, profile_view.column_facts(profile)),
            )
            if rows and (profile.model["unit"] is not None or heading == "Columns")
        ],
    }


def facts(column: Column) -> str:
    """Return the declared values or bounds of a column, as text."""
    if column.values is not None:
        shown = [_plain(value) for value in column.values[:_MAX_VALUES]]
        rest = len(column.values) - _MAX_VALUES
        return ", ".join(shown) + (f" and {rest:,} more" if rest > 0 else "")
    return column.range_text


def schemas(visit: Visit, names: Collection[str] | None = None) -> list[dict[str, Any]]:
    """Return the visible columns of each dataset, for the list beside the editor."""
    return [
        {
            "name": table.name,
            "columns": [
                {"name": column.name, "about": facts(column) or column.kind.value}
                for column in table.columns
                if not column.hidden
            ],
        }
        for table in _tables(visit)
        if names is None or table.name in names
    ]


def unit(visit: Visit, names: Collection[str] | None = None) -> str:
    """Return the name of the privacy unit, for a sentence."""
    tables = [table for table in _tables(visit) if names is None or table.name in names]
    named = {table.unit.column for table in tables if table.unit is not None and table.unit.column}
    return named.pop() if len(named) == 1 else "unit"


def examples(visit: Visit, names: Collection[str] | None = None) -> list[dict[str, Any]]:
    """Return example queries, made from the declarations alone."""
    found: list[dict[str, Any]] = []
    for table in _tables(visit):
        if names is not None and table.name not in names:
            continue
        if table.unit is None:
            found.append(
                {
                    "words": f"List rows of {table.name} (free)",
                    "sql": f"SELECT *\nFROM {quoted(table.name)}\nLIMIT 20",
                }
            )
            continue
        columns = [column for column in table.columns if not column.hidden and column.name != table.unit.column]
        keys = [column for column in columns if column.values is not None and len(column.values) <= 20]
        measures = [
            column for column in columns if column.kind.numeric and column.bounds is not None and column.values is None
        ]
        counted = "*" if table.privacy_id is None else f"DISTINCT {quoted(table.privacy_id)}"
        source = quoted(table.name)
        whom = (table.unit.column or "row") if table.unit.path is None else table.privacy_id or "row"
        found.append(
            {
                "words": f"Count each {whom} in {table.name}",
                "sql": f"SELECT COUNT({counted}) AS n\nFROM {source}",
            }
        )
        if keys:
            key = quoted(keys[-1].name)
            found.append(
                {
                    "words": f"Count by {keys[-1].name}",
                    "sql": f"SELECT {key}, COUNT({counted}) AS n\nFROM {source}\nGROUP BY {key}",
                    "groups": 1,
                }
            )
        if measures:
            measure = quoted(measures[0].name)
            found.append(
                {
                    "words": f"Average {measures[0].name}",
                    "sql": f"SELECT AVG({measure}) AS average\nFROM {source}",
                    "rows": 1,
                }
            )
            found.append(
                {
                    "words": f"Median {measures[-1].name}",
                    "sql": f"SELECT MEDIAN({quoted(measures[-1].name)}) AS median\nFROM {source}",
                    "rows": 1,
                }
            )
    return [{"groups": None, "rows": None} | each for each in found]


def quoted(name: str) -> str:
    """Return a name for SQL, quoted if needed."""
    return name if name.isascii() and name.isidentifier() and name.islower() else '"' + name.replace('"', '""') + '"'


def _tables(visit: Visit) -> list[Table]:
    service, principal = visit.service, visit.principal
    return [Table.from_json(service.catalog.describe(principal, name)) for name in service.catalog.datasets(principal)]


def _example(column: Column, value: int) -> str:
    return str(value) if column.kind is Kind.INTEGER else column.bound_text(Fraction(value))


def _plain(value: Value) -> str:
    return brief(value) if isinstance(value, Fraction) else str(value)


def _sample(column: Column, place: int) -> str:
    """Return an artificial value that fits the declaration; it comes from no real row."""
    if column.values:
        return _plain(column.values[(place * 7 + len(column.name)) % len(column.values)])
    if column.bounds is not None:
        part = Fraction((place * 3 + len(column.name)) % 9 + 1, 10)
        value = column.bounds.low + (column.bounds.high - column.bounds.low) * part
        return brief(value) if column.kind is Kind.REAL else _example(column, round(value))
    made = {Kind.INTEGER: str(1001 + place), Kind.REAL: f"{place}.5", Kind.BOOLEAN: str(place % 2 == 0).lower()}
    return made.get(column.kind) or {
        Kind.DATE: f"2020-0{place + 1}-15",
        Kind.TIMESTAMP: f"2020-0{place + 1}-15 12:00",
    }.get(column.kind, f"text {place + 1}")


def _snippets(visit: Visit, table: Table) -> list[tuple[str, str]]:
    address = visit.service.settings.public_url or str(visit.request.base_url).rstrip("/")
    counted = "*" if table.privacy_id is None else f"DISTINCT {quoted(table.privacy_id)}"
    sql = f"SELECT COUNT({counted}) AS n FROM {quoted(table.name)}"  # noqa: S608 - only shown
    # public tables need no ε
    body = json.dumps({"sql": sql} | ({"epsilon": "0.1"} if table.unit else {}), ensure_ascii=False)
    python, shell = (", epsilon=0.1", " --epsilon 0.1") if table.unit else ("", "")
    return [
        (
            "Python",
            f'import os\nimport hubbub\n\nh = hubbub.connect("{address}", token=os.environ["HUBBUB_TOKEN"])\n'
            f"h.estimate({sql!r}{python})  # free\nr = h.query({sql!r}{python})\nr.to_pandas()",
        ),
        (
            "Command line",
            f"export HUBBUB_URL={address} HUBBUB_TOKEN=hub_…\n"
            f"hubbub plan {_shell(sql)}{shell}  # free\nhubbub query {_shell(sql)}{shell}",
        ),
        (
            "curl",
            f'curl {address}/api/v1/query -H "Authorization: Bearer $HUBBUB_TOKEN" \\\n'
            f"  -H \"Idempotency-Key: $(uuidgen)\" -H 'Content-Type: application/json' \\\n  -d {_shell(body)}",
        ),
    ]


def _shell(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
