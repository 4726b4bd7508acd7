"""Read the privacy unit of a dataset and its contribution bounds.

Tested in tests/config/test_config.py and tests/config/test_ownership.py.
"""

from collections.abc import Mapping
from dataclasses import replace

from hubbub.accounting.policy import is_name
from hubbub.config import ownership
from hubbub.config.document import KEYS, check_keys, expect_mapping, reject, reject_unknown
from hubbub.core import numbers
from hubbub.core.schema import Column, Kind, Period, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.engines.base import DataSource, Field
from hubbub.errors import ConfigError, HubbubError

MAX_GROUPS = 10**6
MAX_ROWS = 10**9
#: The public maximum of the rows of one unit where bounds are found automatically: by default, and at most.
DEFAULT_MAX_ROWS, MAX_AUTO_ROWS = 10_000, 10**7

ONE_FORM = "Use another column, or create one in a view that writes each privacy unit in exactly one way."


def read_via(
    entry: Mapping[str, object],
    path: str,
    fields: tuple[Field, ...],
    source: DataSource,
    tables: Mapping[str, tuple[Table, DataSource]],
) -> ownership.Via | None:
    """Read the reference to the owner's table, if the unit is declared by one."""
    terms = entry.get("unit")
    if not isinstance(terms, dict) or not {"via", "of"} & set(terms):
        return None
    if "via" not in terms:
        reject("HB730", f"{path}.unit.via", "is missing", "Name the columns that refer to the key of the other table.")
    return ownership.read_via(terms, f"{path}.unit", fields, source, tables)


def read_unit(
    entry: Mapping[str, object], path: str, fields: tuple[Field, ...], via: ownership.Via | None, *, public: bool
) -> tuple[PrivacyUnit | None, Relation]:
    """Read the privacy unit and the neighbor relation; the path to the owner is added when the columns are known."""
    if public:
        for key in ("unit", "relation"):
            if key in entry:
                reject("HB413", f"{path}.{key}", "is not allowed on a public dataset", f"Remove `{key}`.")
        return None, Relation.ADD_REMOVE
    relation = _relation(entry, path, via)
    value = entry.get("unit")
    if value == "row":
        return PrivacyUnit(None, 1, 1), relation
    if value is None or value == {}:
        reject(
            "HB413",
            f"{path}.unit",
            "is missing: it defines who is protected",
            "Write `unit: {column: patient_id, groups: 1, rows: 1}` to protect all rows of one patient, or"
            " `unit: row` if no person has more than one row.",
        )
    terms = expect_mapping(value, f"{path}.unit")
    check_keys(terms, f"{path}.unit", KEYS["datasets.*.unit"])
    if via is not None and via.of.unit is not None:
        return _bounds(terms, f"{path}.unit", ownership.owner_column(via), via.of.unit.entity), relation
    column, entity = _column(terms, path, fields), terms.get("entity", "")
    per = _per(terms, path, fields)
    if not isinstance(entity, str) or ("entity" in terms and not is_name(entity)):
        reject(
            "HB413",
            f"{path}.unit.entity",
            "is not a valid name",
            "Write one word, and use the same word in every table about the same people.",
        )
    unit = _bounds(terms, f"{path}.unit", column, entity)
    if per is None:
        return unit, relation
    period = Period(column, Kind.TEXT, per[0], per[1], Kind.TIMESTAMP)
    return replace(unit, column=period.name, period=period), relation


def _per(terms: Mapping[str, object], path: str, fields: tuple[Field, ...]) -> tuple[str, str] | None:
    """Read the length of the period that is protected, and the column with the time."""
    value, names = terms.get("per"), {field.name for field in fields}
    if value is None:
        return None
    if not isinstance(value, dict) or len(value) != 1 or not set(value) <= KEYS["datasets.*.unit.per"]:
        remedy = "Write `per: {day: visited_at}`; the period is hour, day, week (from Monday) or month, in UTC."
        reject("HB736", f"{path}.unit.per", "does not name a period and the column with the time", remedy)
    ((per, time),) = value.items()
    if not isinstance(time, str) or time not in names:
        reject_unknown("HB736", f"{path}.unit.per.{per}: {time}", str(time), "column of the source", names)
    return str(per), time


def period_columns(unit: PrivacyUnit | None) -> tuple[str, ...]:
    """Return the columns of which a unit by time consists."""
    return () if unit is None or unit.period is None else (unit.period.column, unit.period.time)


def typed_period(period: Period, columns: tuple[Column, ...], path: str) -> Period:
    """Return the period with the types of its columns, or raise if they do not fit."""
    kinds = {column.name: column.kind for column in columns}
    person, time = kinds[period.column], kinds[period.time]
    if person not in (Kind.INTEGER, Kind.TEXT):
        why = f"needs a privacy ID column of type integer or text, and {period.column} is {person.value}"
        reject("HB736", f"{path}.unit.per", why, "Cast the column in a view.")
    if time is not Kind.TIMESTAMP and (time is not Kind.DATE or period.per == "hour"):
        why = f"needs the time in a column of type {'timestamp' if period.per == 'hour' else 'date or timestamp'}"
        remedy = f"Declare `{period.time}: {{type: timestamp}}`, or name another column."
        reject("HB736", f"{path}.unit.per", f"{why}, and {period.time} is {time.value}", remedy)
    return replace(period, kind=person, time_kind=time)


def _relation(entry: Mapping[str, object], path: str, via: ownership.Via | None) -> Relation:
    relation = entry.get("relation", "add_remove" if via is None else via.of.relation.value)
    if relation not in ("add_remove", "replace"):
        reject("HB413", f"{path}.relation", "is not a known relation", "Write `add_remove` or `replace`.")
    if via is not None and relation != via.of.relation.value:
        reject("HB730", f"{path}.relation", f"differs from that of {via.of.name}", "Remove it.")
    return Relation(relation)


def _column(terms: Mapping[str, object], path: str, fields: tuple[Field, ...]) -> str:
    """Read the privacy ID column; reject one in which a person can have two values, or two people the same one."""
    column, names = terms.get("column"), {field.name for field in fields}
    if not isinstance(column, str):
        reject("HB413", f"{path}.unit.column", "is missing", "Name the privacy ID column, such as patient_id.")
    if column not in names:
        reject_unknown("HB413", f"{path}.unit.column: {column}", column, "column of the source", names)
    for field in fields:
        if field.name == column and field.unfit:
            reject("HB413", f"{path}.unit.column", f"cannot be {column}: {field.unfit}", ONE_FORM)
    return column


def _bounds(terms: Mapping[str, object], path: str, column: str, entity: str) -> PrivacyUnit:
    """Read the contribution bounds: declared, or found privately by each query."""
    groups, rows = terms.get("groups"), terms.get("rows")
    if "rows_total" in terms and "auto" in (groups, rows):
        reject("HB413", f"{path}.rows_total", "is only used with declared bounds", "Remove it, or declare `rows`.")
    if rows == "auto":
        if groups not in (None, "auto"):
            reject(
                "HB413",
                f"{path}.groups",
                "is a number, but rows are found automatically over all groups together",
                "Write `groups: auto`, or declare both as numbers.",
            )
        most = read_integer(terms.get("max_rows", DEFAULT_MAX_ROWS), f"{path}.max_rows", MAX_AUTO_ROWS)
        return PrivacyUnit(column, most, most, entity, auto=True)
    if groups == "auto":
        reject("HB413", f"{path}.groups", "is auto, but rows is a number", "Write `rows: auto` as well.")
    if "max_rows" in terms:
        reject("HB413", f"{path}.max_rows", "is only used with `rows: auto`", "Remove it, or write `rows: auto`.")
    groups = read_integer(1 if groups is None else groups, f"{path}.groups", MAX_GROUPS)
    rows = read_integer(1 if rows is None else rows, f"{path}.rows", MAX_ROWS)
    total = terms.get("rows_total")
    total = None if total is None else read_integer(total, f"{path}.rows_total", MAX_ROWS)
    return PrivacyUnit(column, groups, rows, entity, rows_total=total)


def read_integer(value: object, path: str, high: int) -> int:
    """Read an integer from 1 to `high`."""
    try:
        return numbers.integer(value, path, 1, high)
    except HubbubError as error:
        raise ConfigError("HB413", error.message, error.remedy) from None
