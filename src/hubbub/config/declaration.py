"""The declaration of a dataset that the ledger records: no data values, no addresses, no passwords.

Tested in tests/config/test_summary.py.
"""

from hashlib import sha256
from typing import Any

from hubbub.accounting.chain import canonical
from hubbub.core.schema import Column, Table

#: A longer list of keys is recorded by its length and hash.
_MAX_LISTED = 100


def declare(table: Table) -> dict[str, Any]:
    """Give the privacy unit, neighbor relation and columns of a table."""
    unit = table.unit
    columns = {column.name: _column(column) for column in table.columns}
    form: dict[str, Any] = {"public": table.public, "columns": columns}
    if table.unique is not None:
        form["unique"] = list(table.unique)
    if unit is None:
        return form
    kind = table.owner_kind()
    unit_form: dict[str, Any] = {
        "column": unit.column,
        "kind": None if kind is None else kind.value,
        "entity": unit.entity,
        "groups": unit.groups,
        "rows": unit.rows,
    }
    if unit.auto:  # omitted if false, as below
        unit_form["auto"] = True
    if unit.path is not None:
        unit_form["path"] = unit.path.to_json()
    if unit.period is not None:
        unit_form["period"] = unit.period.to_json()
    if table.arrivals:  # omitted if false, so that older declarations keep their hashes
        form["arrivals"] = "public"
    if table.others:
        form["others"] = [unit.to_json() for unit in table.others]
    if table.blocks is not None:
        form["blocks"] = table.blocks.declaration()
    return form | {"unit": unit_form, "relation": table.relation.value}


def _column(column: Column) -> dict[str, Any]:
    form = column.to_json()
    form.pop("name")
    values = form["values"]
    if values is not None and len(values) > _MAX_LISTED:
        form["values"] = {"count": len(values), "sha256": sha256(canonical(values).encode()).hexdigest()}
    return {key: value for key, value in form.items() if value not in (None, False)}
