"""Read one dataset of hubbub.yaml, and compare it with the names and types (never the values) of its source.

Tested in tests/config/test_config.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hubbub.accounting.policy import is_name
from hubbub.config.columns import read_column
from hubbub.config.document import KEYS, check_keys, expect_mapping, reject, reject_unknown
from hubbub.core import numbers
from hubbub.core.schema import Column, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.engines.base import DataSource, Field, View, locate
from hubbub.engines.multi_engine import read_schema
from hubbub.errors import ConfigError, HubbubError

MAX_GROUPS = 10**6
MAX_ROWS = 10**9
#: The public maximum of the rows of one unit where bounds are found automatically: by default, and at most.
DEFAULT_MAX_ROWS, MAX_AUTO_ROWS = 10_000, 10**7
#: Each failure can reveal a bit about the data, so few are allowed: see `hubbub.accounting.failures`.
DEFAULT_FAILURES, MAX_FAILURES = 3, 1000

_ONE_FORM = "Use another column, or create one in a view that writes each privacy unit in exactly one way."


@dataclass(frozen=True, slots=True)
class DatasetConfig:
    """A dataset as declared and checked against its source.

    disabled   columns that cannot be used, each with the reason
    version    a column that increases with every change of the data
    failures   an analyst's queries that may fail after they were charged before the owner must review them
    """

    table: Table
    place: DataSource
    disabled: tuple[tuple[str, str], ...] = ()
    version: str | None = None
    failures: int = DEFAULT_FAILURES

    @property
    def view(self) -> View:
        """The part of the source that the engine serves: without hidden columns, except the privacy ID column."""
        unit = self.table.unit.column if self.table.unit else None
        columns = [(c.name, c.kind) for c in self.table.columns if not c.hidden or c.name == unit]
        return View(self.table.name, self.place, tuple(columns), self.version)


def read_dataset(name: str, value: object, base: Path, problems: list[HubbubError]) -> DatasetConfig | None:
    """Read one dataset; errors are added to `problems`, column by column."""
    path = f"datasets.{name}"
    before = len(problems)
    try:
        entry = expect_mapping(value, path)
        check_keys(entry, path, KEYS["datasets.*"])
        source = locate(entry.get("source"), f"{path}.source", base=base, name=name)
        fields = read_schema(source)
        names = {field.name for field in fields}
        public = entry.get("public", False) is True
        unit, relation = _unit(entry, path, names, public=public)
        _check_unit_column(unit, fields, path)
        columns, disabled = _columns(entry, path, fields, unit, problems, public=public)
        unique = _unique(entry, path, {column.name for column in columns}, public=public)
        version = _version(entry, path, names, source)
        failures = _integer(entry.get("failures", DEFAULT_FAILURES), f"{path}.failures", MAX_FAILURES)
        arrivals = _arrivals(entry, path, public=public)
    except HubbubError as error:
        problems.append(error)
        return None
    if len(problems) > before:
        return None
    table = Table(name, columns, unit, relation, unique, arrivals)
    return DatasetConfig(table, source, disabled, version, failures)


def _arrivals(entry: Mapping[str, object], path: str, *, public: bool) -> bool:
    """Read whether the number of arrivals in streams of a dataset is public."""
    value = entry.get("arrivals")
    if value is not None and (value != "public" or public):
        reject(
            "HB437",
            f"{path}.arrivals",
            "can only be `public`, and only on a private dataset",
            "Write `arrivals: public` if the number of arrivals in its streams is public, or remove it.",
        )
    return value is not None


def _version(entry: Mapping[str, object], path: str, names: set[str], source: DataSource) -> str | None:
    value = entry.get("version")
    if value is None:
        return None
    if not source.engine.is_server:
        reject("HB414", f"{path}.version", "is only for tables on a server", "Remove it: files are hashed.")
    if not isinstance(value, str) or value not in names:
        reject("HB414", f"{path}.version", "is not a column", "Name a column that increases with every change.")
    return value


def _unit(
    entry: Mapping[str, object], path: str, names: set[str], *, public: bool
) -> tuple[PrivacyUnit | None, Relation]:
    if public:
        for key in ("unit", "relation"):
            if key in entry:
                reject("HB413", f"{path}.{key}", "is not allowed on a public dataset", f"Remove `{key}`.")
        return None, Relation.ADD_REMOVE
    relation = entry.get("relation", "add_remove")
    if relation not in ("add_remove", "replace"):
        reject("HB413", f"{path}.relation", "is not a known relation", "Write `add_remove` or `replace`.")
    value = entry.get("unit")
    if value == "row":
        return PrivacyUnit(None, 1, 1), Relation(relation)
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
    column = terms.get("column")
    if not isinstance(column, str):
        reject("HB413", f"{path}.unit.column", "is missing", "Name the privacy ID column, such as patient_id.")
    if column not in names:
        reject_unknown("HB413", f"{path}.unit.column: {column}", column, "column of the source", names)
    entity = terms.get("entity", "")
    if not isinstance(entity, str) or ("entity" in terms and not is_name(entity)):
        reject(
            "HB413",
            f"{path}.unit.entity",
            "is not a valid name",
            "Write one word, and use the same word in every table about the same people.",
        )
    return _bounds(terms, f"{path}.unit", column, entity), Relation(relation)


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
        most = _integer(terms.get("max_rows", DEFAULT_MAX_ROWS), f"{path}.max_rows", MAX_AUTO_ROWS)
        return PrivacyUnit(column, most, most, entity, auto=True)
    if groups == "auto":
        reject("HB413", f"{path}.groups", "is auto, but rows is a number", "Write `rows: auto` as well.")
    if "max_rows" in terms:
        reject("HB413", f"{path}.max_rows", "is only used with `rows: auto`", "Remove it, or write `rows: auto`.")
    groups = _integer(1 if groups is None else groups, f"{path}.groups", MAX_GROUPS)
    rows = _integer(1 if rows is None else rows, f"{path}.rows", MAX_ROWS)
    total = terms.get("rows_total")
    total = None if total is None else _integer(total, f"{path}.rows_total", MAX_ROWS)
    return PrivacyUnit(column, groups, rows, entity, rows_total=total)


def _check_unit_column(unit: PrivacyUnit | None, fields: tuple[Field, ...], path: str) -> None:
    """Reject a privacy ID column in which one person can have two values, or two people the same one."""
    for field in fields:
        if unit is not None and field.name == unit.column and field.unfit:
            reject("HB413", f"{path}.unit.column", f"cannot be {field.name}: {field.unfit}", _ONE_FORM)


def _integer(value: object, path: str, high: int) -> int:
    try:
        return numbers.integer(value, path, 1, high)
    except HubbubError as error:
        raise ConfigError("HB413", error.message, error.remedy) from None


def _columns(
    entry: Mapping[str, object],
    path: str,
    fields: tuple[Field, ...],
    unit: PrivacyUnit | None,
    problems: list[HubbubError],
    *,
    public: bool,
) -> tuple[tuple[Column, ...], tuple[tuple[str, str], ...]]:
    """Read the columns that can be used, and the others with the reason why not."""
    declared = expect_mapping(entry.get("columns") or {}, f"{path}.columns")
    by_name = {field.name: field for field in fields}
    for name in declared:
        if name not in by_name:
            try:
                reject_unknown("HB414", f"{path}.columns.{name}", name, "column of the source", by_name)
            except HubbubError as error:
                problems.append(error)
    columns: list[Column] = []
    disabled: list[tuple[str, str]] = []
    for field in fields:
        is_unit = unit is not None and field.name == unit.column
        # public tables show all columns, private ones only those that the owner has reviewed
        if field.name not in declared and not is_unit and not public:
            disabled.append((field.name, "not listed under columns"))
            continue
        where = f"{path}.columns.{field.name}"
        try:
            column = _column(declared.get(field.name), field, where, is_unit=is_unit)
        except HubbubError as error:
            problems.append(error)
            continue
        if column is None:
            why = f"hubbub does not support its type, {field.type}"
            disabled.append((field.name, why))
            if is_unit:
                message = f"{where} cannot be the privacy ID column: {why}."
                problems.append(ConfigError("HB413", message, "Name another column."))
            continue
        columns.append(column)
        if column.hidden:
            disabled.append((field.name, "hidden"))
    return tuple(columns), tuple(disabled)


def _column(value: object, field: Field, where: str, *, is_unit: bool) -> Column | None:
    column = read_column(value, field, where)
    if column is not None and not column.hidden and field.type.lower().startswith("interval"):
        why = "is an interval, and equal intervals can be written in different ways (1 month, 30 days)"
        reject("HB414", where, why, "Cast it to seconds or to text in a view, or remove it.")
    why = field.misread(column.kind) if is_unit and column is not None else ""
    if why:
        reject("HB413", where, f"cannot be the privacy ID column: {why}", _ONE_FORM)
    return column


def _unique(entry: Mapping[str, object], path: str, names: set[str], *, public: bool) -> tuple[str, ...] | None:
    value = entry.get("unique")
    if value is None:
        return None
    if not public:
        reject("HB414", f"{path}.unique", "is only for public tables", "Remove it: it is not checked here.")
    columns = [value] if isinstance(value, str) else value
    if not isinstance(columns, list) or not columns or not all(isinstance(n, str) and n in names for n in columns):
        reject("HB414", f"{path}.unique", "does not name columns of the table", "Write `unique: [id]`.")
    return tuple(columns)
