"""Read the two owners of each row of a dataset: `unit: [{column: patient, entity: patient}, {…}]`.

Tested in tests/config/test_owners.py.
"""

from collections.abc import Mapping

from hubbub.config import units
from hubbub.config.document import expect_mapping, reject
from hubbub.core.schema import Kind, PrivacyUnit, Table
from hubbub.engines.base import Field

Entry = Mapping[str, object]


def split(entry: Entry, path: str) -> tuple[Entry, Entry | None]:
    """Return a dataset with its first owner as its unit, and the second owner, if the unit is a list.

    An owner who is found through keys comes first. Queries find how much of each owner counts.
    """
    value = entry.get("unit")
    if not isinstance(value, list):
        return entry, None
    if len(value) != 2:
        reject(
            "HB760",
            f"{path}.unit",
            f"lists {len(value)} owners, and a row can have two",
            "List the two whose rows must be protected, or write one unit without a list.",
        )
    terms = [_terms(each, f"{path}.unit[{place}]") for place, each in enumerate(value)]
    first, second = sorted(terms, key=lambda each: "via" not in each)
    if "via" in second:
        why = "finds both owners through keys, and only one can be"
        reject("HB760", f"{path}.unit", why, "Add a column of one of the two to the table, in a view.")
    return {**entry, "unit": first}, second


def _terms(value: object, where: str) -> Entry:
    terms = expect_mapping(value, where)
    if "per" in terms:
        reject("HB760", f"{where}.per", "is not supported where rows have two owners", "Remove it.")
    for key in ("groups", "rows", "rows_total"):
        if key in terms:
            reject("HB760", f"{where}.{key}", "is found by each query", f"Remove `{key}`; `max_rows` may stay.")
    if not terms.get("entity") and "via" not in terms:
        why = "is missing: it tells whether both columns name the same kind of people"
        reject("HB760", f"{where}.entity", why, "Write one word for each, such as patient and doctor.")
    return {**terms, "rows": "auto"}


def read_second(terms: Entry, path: str, fields: tuple[Field, ...], first: PrivacyUnit) -> tuple[PrivacyUnit, ...]:
    """Read the second owner."""
    second, _ = units.read_unit({"unit": terms}, path, fields, None, public=False)
    if second is None or second.column == first.column:
        reject("HB760", f"{path}.unit", "names one column twice", "Name a column for each owner, or write one unit.")
    if not first.entity:
        reject("HB760", f"{path}.unit", "refers to a table without an entity", "Declare `entity` there.")
    return (second,)


def check_types(table: Table, path: str) -> None:
    """Raise if both owners are of one entity and are read as different types: 1 and '1' would be two owners."""
    kinds = [(table.owner_kind(unit) or Kind.TEXT).value for unit in table.owners]
    if len({unit.entity for unit in table.owners}) < len(set(kinds)):
        why = f"names one entity by columns of type {' and '.join(kinds)}"
        reject("HB760", f"{path}.unit", why, "Declare one `type` for both columns, or cast one of them in a view.")
