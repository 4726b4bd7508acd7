"""What is declared about a dataset, as the ledger keeps it: no value of the data, no address, no password."""

from hashlib import sha256
from typing import Any

from hubbub.accounting.chain import canonical
from hubbub.core.schema import Column, Table

#: A longer list of keys is kept by its length and hash.
_LISTED = 100


def declaration(table: Table) -> dict[str, Any]:
    """Write down whom a table protects, under which relation, and what is said of its columns."""
    unit = table.unit
    form: dict[str, Any] = {"public": table.public, "columns": {each.name: _column(each) for each in table.columns}}
    if table.unique is not None:
        form["unique"] = list(table.unique)
    if unit is None:
        return form
    kind = next((each.kind.value for each in table.columns if each.name == unit.column), None)
    about = {"column": unit.column, "kind": kind, "entity": unit.entity, "groups": unit.groups, "rows": unit.rows}
    if table.arrivals:  # left out where it is not said, as it was before it could be
        form["arrivals"] = "public"
    return form | {"unit": about, "relation": table.relation.value}


def _column(column: Column) -> dict[str, Any]:
    form = column.to_json()
    form.pop("name")
    values = form["values"]
    if values is not None and len(values) > _LISTED:
        form["values"] = {"count": len(values), "sha256": sha256(canonical(values).encode()).hexdigest()}
    return {key: value for key, value in form.items() if value not in (None, False)}
