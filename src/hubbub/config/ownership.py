"""Read keys of private tables, and privacy units that are found through them: `unit: {via: order_id, of: orders}`.

Tested in tests/config/test_ownership.py.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from hubbub.config.document import reject, reject_unknown
from hubbub.core.schema import Column, OwnerPath, Reference, Table
from hubbub.engines.base import DataSource, Field
from hubbub.errors import ConfigError, HubbubError

#: Maximum number of tables between a row and its owner.
MAX_STEPS = 8

_EXAMPLE = "Write `unit: {via: customer_id, of: customers}`."


@dataclass(frozen=True, slots=True)
class Via:
    """`via` and `of` as written: columns of this table that refer to the key of another."""

    columns: tuple[str, ...]
    of: Table


def in_order(entries: Mapping[str, object], problems: list[HubbubError]) -> Iterator[str]:
    """Yield the names of datasets so that each comes after the one that its `of` names; report circles."""
    pending = list(entries)
    while pending:
        ready = [name for name in pending if _of(entries[name]) not in pending]
        if not ready:
            problems.append(
                ConfigError(
                    "HB733",
                    f"The privacy units of {' and '.join(pending)} refer to each other in a circle.",
                    "Give one of these tables a privacy ID column: `unit: {column: customer_id}`.",
                )
            )
            return
        yield from ready
        pending = [name for name in pending if name not in ready]


def waits_for_missing(entries: Mapping[str, object], name: str, read: Collection[str]) -> bool:
    """Tell whether a dataset refers to one that could not be read, whose problems are reported already."""
    of = _of(entries[name])
    return of in entries and of not in read


def _of(entry: object) -> str | None:
    unit = entry.get("unit") if isinstance(entry, dict) else None
    # of two owners, one is found through keys at most
    units = [each for each in (unit if isinstance(unit, list) else [unit]) if isinstance(each, dict)]
    return next((each["of"] for each in units if isinstance(each.get("of"), str)), None)


def read_key(
    entry: Mapping[str, object], path: str, fields: tuple[Field, ...], *, public: bool
) -> tuple[str, ...] | None:
    """Read the columns that identify a row of a private table."""
    if "key" not in entry:
        return None
    if public:
        reject("HB730", f"{path}.key", "is only for private tables", "Write `unique: [id]` for a public table.")
    return _columns(entry["key"], f"{path}.key", fields, "Name the column or columns that identify a row: `key: id`.")


def read_via(
    terms: Mapping[str, object],
    path: str,
    fields: tuple[Field, ...],
    source: DataSource,
    known: Mapping[str, tuple[Table, DataSource]],
) -> Via:
    """Read the reference through which the rows of a table belong to the owner of another table's row."""
    for name in ("column", "entity", "per"):
        if name in terms:
            reject("HB730", f"{path}.{name}", "does not go with `via`", f"Remove it: `of` declares the {name}.")
    of = terms.get("of")
    if not isinstance(of, str):
        reject("HB730", f"{path}.of", "is missing: it names the table that `via` refers to", _EXAMPLE)
    if of not in known:
        reject_unknown("HB730", f"{path}.of: {of}", of, "dataset", known)
    columns = _columns(terms["via"], f"{path}.via", fields, _EXAMPLE)
    table, place = known[of]
    _check_target(table, path)
    if len(columns) != len(table.unique or ()):
        key = ", ".join(table.unique or ())
        why = f"names {len(columns)} columns, but the key of {of} is {key}"
        reject("HB730", f"{path}.via", why, "Name one column for each column of the key, in its order.")
    if (source.engine, source.address) != (place.engine, place.address):
        reject(
            "HB732",
            f"{path}.of",
            f"refers to {of}, which is in another source",
            "Put both tables in one database, or both in files.",
        )
    via = Via(columns, table)
    taken = {field.name for field in fields} - set(columns)
    # the SQL that finds owners names its own columns so, and an engine may take one of a table for it
    if owner_column(via) in taken or any(name.startswith("$") for name in (*taken, *columns, *(table.unique or ()))):
        why = f"cannot be used: a column is named {owner_column(via)}, or starts with $"
        reject("HB730", f"{path}.via", why, "Rename the column in a view.")
    return via


def _check_target(table: Table, path: str) -> None:
    unit, of = table.unit, table.name
    if unit is None:
        reject("HB730", f"{path}.of", f"refers to {of}, which is public", "Refer to the table of the protected people.")
    if table.others:
        remedy = "Refer to a table whose rows have one owner."
        reject("HB760", f"{path}.of", f"refers to {of}, whose rows have two owners", remedy)
    if unit.column is None:
        remedy = f"Give {of} a privacy ID column: `unit: {{column: id}}` with `key: id`."
        reject("HB730", f"{path}.of", f"refers to {of}, where each row is its own privacy unit", remedy)
    if table.blocks is not None:
        remedy = f"Remove `blocks` from {of}, or give this table a privacy ID column of its own."
        reject("HB481", f"{path}.of", f"refers to {of}, which has blocks: rows there are not always read", remedy)
    if unit.period is not None:
        remedy = f"Remove `per` from {of}, or declare `column` and `per` in this table too."
        reject("HB730", f"{path}.of", f"refers to {of}, whose privacy unit is a {unit.period.per} of a person", remedy)
    if table.unique is None:
        remedy = f"Add to {of} the column or columns that identify a row, such as `key: id`."
        reject("HB730", f"{path}.of", f"refers to {of}, which declares no key", remedy)
    if unit.path is not None and len(unit.path.steps) >= MAX_STEPS:
        reject("HB730", f"{path}.of", f"is more than {MAX_STEPS} steps from the owner", "Refer to a nearer table.")


def _columns(value: object, path: str, fields: tuple[Field, ...], remedy: str) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        reject("HB730", path, "does not name columns", remedy)
    by_name = {field.name: field for field in fields}
    for name in names:
        if name not in by_name:
            reject_unknown("HB730", f"{path}: {name}", name, "column of the source", by_name)
        if by_name[name].unfit:
            why = f"cannot be {name}: {by_name[name].unfit}"
            reject("HB730", path, why, "Use another column, or create one in a view that writes each key in one way.")
    if len(set(names)) < len(names):
        reject("HB730", path, "names a column twice", remedy)
    return tuple(names)


def owner_column(via: Via) -> str:
    """Return the name of the privacy ID of rows that have a reference.

    Where the key of the other table contains its privacy ID, the reference holds the privacy ID.
    """
    unit, key = via.of.unit, via.of.unique or ()
    if unit is not None and unit.column in key:
        return via.columns[key.index(unit.column)]
    if unit is not None and unit.path is not None:
        return f"{unit.path.tables[-1]}.{unit.path.column}"
    return f"{via.of.name}.{unit.column if unit is not None else ''}"


def owner_path(via: Via, columns: tuple[Column, ...], path: str) -> OwnerPath:
    """Return the way to the owner; raise if a reference and its key have different types."""
    unit, key = via.of.unit, via.of.unique or ()
    kinds = {column.name: column.kind for column in columns}
    there = {column.name: column.kind for column in via.of.columns}
    for column, target in zip(via.columns, key, strict=True):
        if kinds[column] is not there[target]:
            reject(
                "HB731",
                f"{path}.via",
                f"compares {column}, of type {kinds[column].value}, with {via.of.name}.{target}, of type "
                f"{there[target].value}",
                "Declare one `type` for both columns, or cast one of them in a view.",
            )
    if unit is None or unit.column is None:
        raise TypeError("an owner has a privacy ID")
    step = Reference(via.columns, via.of.name, key, tuple(there[target] for target in key))
    kind = via.of.owner_kind()
    if unit.path is not None:
        return OwnerPath((step, *unit.path.steps), unit.path.column, unit.path.kind)
    if kind is None:
        raise TypeError("a privacy ID column of hubbub.yaml has a type")
    return OwnerPath((step,), unit.column, kind)
