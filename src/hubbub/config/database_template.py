"""Write the hubbub.yaml of a whole database from what its catalog declares.

Tested in tests/cli/test_init_database.py.
"""

from hubbub.config.proposal import Proposal, about_people
from hubbub.config.template import BLANK, quoted
from hubbub.core.schema import Kind
from hubbub.engines.base import Field
from hubbub.engines.constraints import CatalogTable, ForeignKey

_HEAD = """\
# hubbub.yaml: who is protected, what analysts can query, and the total privacy budget.
# Written from the catalog of the database (keys, foreign keys, types, enums, CHECK); no values were read.
# Fill in the blanks marked "<- fill in", review what is proposed, then run: hubbub check
#   columns: analysts can use only the columns listed here; remove a line, or write hidden: true, to forbid a column.
#   bounds allow sums and averages, values allow GROUP BY. Do not read bounds off the data; `auto` finds them privately.
#   rows: auto finds privately how many rows of one person a query uses; `hubbub profile` recommends numbers.
version: 1

datasets:
"""
_BUDGET = f"    budget: {{epsilon: }}  {BLANK}: for all analysts and the lifetime of the data; 1 is strong, 6 weak\n"
_FOOT = "\n# Who can query, and how much.\nanalysts:\n  {analyst}:\n"


def database_template(schema: Proposal, *, analyst: str) -> str:
    """Write the datasets with an owner, then those that the owner must decide about, and the analysts."""
    parts = [_HEAD]
    listed = [*schema.owned, *schema.choices]
    parts += [_dataset(schema, name) for name in listed]
    parts += [_apart(schema, name) for name in schema.tables if name not in listed]
    parts.append(_FOOT.format(analyst=analyst))
    parts += [f"    {schema.names[name]}: {{epsilon: }}  {BLANK}\n" for name in listed]
    return "".join(parts)


def _dataset(schema: Proposal, name: str) -> str:
    table = schema.tables[name]
    lines = [f"  {schema.names[name]}:\n", f"    source: {quoted(schema.sources[name])}\n", *_unit(schema, name)]
    if table.keys:
        lines.append(f"    key: {_names(table.keys[0])}\n")
    lines.append("    columns:\n")
    lines += [_column(field, table, schema, name) for field in table.fields]
    return "".join(lines) + _BUDGET


def _unit(schema: Proposal, name: str) -> list[str]:
    table, way = schema.tables[name], schema.owned.get(name)
    if name in schema.choices:
        options = [f"    #   unit: {_via(schema, choice)}\n" for choice in schema.choices[name]]
        return [
            "    # Rows refer to people in several ways; only the owner that you choose is protected, not others.\n",
            *options,
            f"    unit:  {BLANK}\n",
        ]
    checked = [
        f"    # {', '.join(other.columns)} leads to people too. If they are others, they are not protected.\n"
        for other in schema.others.get(name, ())
    ]
    if way is not None:
        return [*checked, f"    unit: {_via(schema, way)}\n"]
    if not schema.given:
        checked.append("    # Proposed: is one row here one person? If not: hubbub init --person\n")
    key = table.keys[0]
    if len(key) > 1:
        return [*checked, f"    unit:  {BLANK}: the column that identifies a person\n"]
    return [*checked, f"    unit: {{column: {quoted(key[0])}, entity: {schema.names[name]}}}\n"]


def _via(schema: Proposal, way: ForeignKey) -> str:
    return f"{{via: {_names(way.columns)}, of: {schema.names[way.table]}, rows: auto}}"


def _apart(schema: Proposal, name: str) -> str:
    """Write a table without a known owner as a comment: it must not become public, or private, by default."""
    table = schema.tables[name]
    if table.problem:
        return f"  # {schema.names[name]} cannot be read: {table.problem}\n"
    way = about_people(schema.tables, {*schema.owned, *schema.choices}).get(name)
    if way is not None:
        return (
            f"  # {schema.names[name]}: {', '.join(way.columns)} leads to people through {schema.names[way.table]}, "
            "but not by the first key of each table.\n"
            "  # Its rows belong to people: declare that key as `key` there, and `unit: {via: …, of: …}` here.\n"
            f"  # {schema.names[name]}:\n"
            f"  #   source: {quoted(schema.sources[name])}\n"
        )
    return (
        f"  # {schema.names[name]}: no foreign key leads to people. Decide, then remove the # signs:\n"
        "  #   public: true       if it is about nobody: everybody who can query sees all of its rows, without noise\n"
        "  #   unit: {column: …}  if its rows belong to people: see the README\n"
        f"  # {schema.names[name]}:\n"
        f"  #   source: {quoted(schema.sources[name])}\n"
    )


def _column(field: Field, table: CatalogTable, schema: Proposal, name: str) -> str:
    label = f"      {quoted(field.name)}:"
    if field.kind is None:
        if field.element is not None:
            return f"      # {quoted(field.name)}: {{elements: 8}}  # {field.type}: the most elements of a list\n"
        return f"      # {quoted(field.name)}: {field.type} is not supported\n"
    facts = []
    way = schema.owned.get(name)
    is_key = any(field.name in key for key in table.keys) or any(field.name in r.columns for r in table.references)
    if way is not None and field.name in way.columns:
        is_key = True
    if field.name in table.values:
        listed = table.values[field.name]
        facts.append(f"values: [{', '.join(listed if field.kind.numeric else map(quoted, listed))}]")
    elif field.name in table.bounds and (field.kind.numeric or field.kind in (Kind.DATE, Kind.TIMESTAMP)):
        facts.append(f"bounds: [{', '.join(table.bounds[field.name])}]")
    elif field.kind.numeric and not is_key:
        facts.append("bounds: auto")
    if field.name in table.required and (field.kind.numeric or is_key):
        facts.append("required: true")
    note = f"  # {field.kind.value}{', a key' if is_key else ''}"
    return f"{label} {{{', '.join(facts)}}}{note}\n"


def _names(columns: tuple[str, ...]) -> str:
    listed = [quoted(column) for column in columns]
    return listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
