"""Read one dataset of hubbub.yaml, and compare it with the names and types (never the values) of its source.

Tested in tests/config/test_config.py.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from hubbub.config import blocks, owners, ownership, units
from hubbub.config.columns import read_column, read_list
from hubbub.config.disclosure import read_disclosure
from hubbub.config.document import KEYS, check_keys, expect_mapping, reject, reject_unknown
from hubbub.config.sandbox import ON, SandboxRule, read_sandbox
from hubbub.core.schema import Column, Table
from hubbub.engines.base import LOOSE_COLLATION, DataSource, Field, View, locate
from hubbub.engines.multi_engine import read_schema
from hubbub.errors import ConfigError, HubbubError

#: Each failure can reveal a bit about the data, so few are allowed: see `hubbub.accounting.failures`.
DEFAULT_FAILURES, MAX_FAILURES = 3, 1000
#: The largest number of rows that can be declared.
MAX_EXPECTED_ROWS = 10**12

#: Whose releases may be sources of free answers for an analyst, besides their own.
Share = Literal["none", "group", "everyone"]
SHARES: tuple[Share, ...] = ("none", "group", "everyone")
Reuse = Literal["asked", "always"]
REUSES: tuple[Reuse, ...] = ("always", "asked")


@dataclass(frozen=True, slots=True)
class DatasetConfig:
    """A dataset as declared and checked against its source.

    disabled   columns that cannot be used, each with the reason
    version    a column that increases with every change of the data
    failures   an analyst's queries that may fail after they were charged before the owner must review them
    checksum   detect changes by reading the rows, however large the table is
    share      whose analysts' releases may be sources of free answers for others: of everyone, of a group, or of none
    sandbox    what queries in the sandbox read instead of the data
    reuse      whether a query with a price is answered from earlier releases that are as exact, or only if `free` asks
    loose      columns whose collation treats different texts as equal, while hubbub compares bytes
    """

    table: Table
    place: DataSource
    disabled: tuple[tuple[str, str], ...] = ()
    version: str | None = None
    failures: int = DEFAULT_FAILURES
    checksum: bool = False
    loose: tuple[str, ...] = ()
    share: Share = "none"
    reuse: Reuse = "always"
    sandbox: SandboxRule = ON

    @property
    def view(self) -> View:
        """The part of the source that the engine serves: without hidden columns, except privacy IDs and keys."""
        needed = self.table.references | {unit.column for unit in self.table.owners}
        columns = [(c.name, c.kind) for c in self.table.columns if not c.hidden or c.name in needed]
        return View(self.table.name, self.place, tuple(columns), self.version, self.checksum)


def read_dataset(
    name: str, value: object, base: Path, problems: list[HubbubError], known: Mapping[str, "DatasetConfig"]
) -> DatasetConfig | None:
    """Read one dataset, after those in `known`; errors are added to `problems`, column by column."""
    path = f"datasets.{name}"
    before = len(problems)
    try:
        entry: Mapping[str, object] = expect_mapping(value, path)
        check_keys(entry, path, KEYS["datasets.*"])
        source = locate(entry.get("source"), f"{path}.source", base=base, name=name)
        fields = read_schema(source)
        names = {field.name for field in fields}
        public = entry.get("public", False) is True
        tables = {name: (dataset.table, dataset.place) for name, dataset in known.items()}
        entry, second = owners.split(entry, path)
        via = units.read_via(entry, path, fields, source, tables)
        unit, relation = units.read_unit(entry, path, fields, via, public=public)
        others = () if second is None or unit is None else owners.read_second(second, path, fields, unit)
        key = ownership.read_key(entry, path, fields, public=public)
        needed = frozenset((key or ()) + (() if via is None else via.columns) + units.period_columns(unit))
        needed |= frozenset(blocks.block_column(entry))
        ids = frozenset(each.column for each in (unit, *others) if each is not None)
        columns, disabled = _columns(entry, path, fields, ids, problems, needed, public=public)
        unique = key or _unique(entry, path, {column.name for column in columns}, public=public)
        if via is not None and unit is not None and len(problems) == before:
            unit = replace(unit, path=ownership.owner_path(via, columns, f"{path}.unit"))
        if unit is not None and unit.period is not None and len(problems) == before:
            unit = replace(unit, period=units.typed_period(unit.period, columns, path))
        version, checksum = _version(entry, path, names, source)
        failures = units.read_integer(entry.get("failures", DEFAULT_FAILURES), f"{path}.failures", MAX_FAILURES)
        arrivals = _arrivals(entry, path, public=public)
        share, reuse = _share(entry, path, public=public), _reuse(entry, path, public=public)
        by_time = None if len(problems) > before else blocks.read_blocks(entry, path, columns, public=public)
        expected = _expected_rows(entry, path, public=public)
        sandbox = read_sandbox(entry, path, public=public)
        table = Table(
            name,
            columns,
            unit,
            relation,
            unique,
            arrivals,
            others=others,
            blocks=by_time,
            expected_rows=expected,
            disclosure=read_disclosure(entry, path, public=public),
        )
        owners.check_types(table, path)
        blocks.check_promise(table, path)
    except HubbubError as error:
        problems.append(error)
        return None
    if len(problems) > before:
        return None
    usable = {column.name for column in columns if not column.hidden}
    loose = tuple(field.name for field in fields if field.name in usable and field.unfit == LOOSE_COLLATION)
    return DatasetConfig(table, source, disabled, version, failures, checksum, loose, share, reuse, sandbox)


def _share(entry: Mapping[str, object], path: str, *, public: bool) -> Share:
    """Read with whom analysts share what was released to them."""
    value = entry.get("share", "none")
    found = next((known for known in SHARES if value == known), None)
    if found is None or (public and found != "none"):
        reject(
            "HB470",
            f"{path}.share",
            "can only be `none`, `group` or `everyone`, and only on a private dataset",
            "Write `share: group` to answer an analyst's queries from the releases of their group, or remove it.",
        )
    return found


def _reuse(entry: Mapping[str, object], path: str, *, public: bool) -> Reuse:
    """Read when queries are answered from earlier releases."""
    value = entry.get("reuse", "always")
    found = next((known for known in REUSES if value == known), None)
    if found is None or (public and found != "always"):
        reject(
            "HB471",
            f"{path}.reuse",
            "can only be `always` or `asked`, and only on a private dataset",
            "Write `reuse: asked` to charge every query that does not ask for a free answer, or remove it.",
        )
    return found


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


def _expected_rows(entry: Mapping[str, object], path: str, *, public: bool) -> int | None:
    """Read roughly how many rows a private table has, by which the owner lets queries be planned."""
    value = entry.get("size")
    if value is None:
        return None
    remedy = "Write `size: {rows: 100000000}`, roughly. Analysts see this number."
    if public:
        reject("HB466", f"{path}.size", "is only for private datasets", "Remove it: public tables are counted.")
    if not isinstance(value, Mapping) or "rows" not in value:
        reject("HB465", f"{path}.size", "does not give a number of rows", remedy)
    check_keys(value, f"{path}.size", KEYS["datasets.*.size"])
    rows = value["rows"]
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= MAX_EXPECTED_ROWS:
        reject("HB465", f"{path}.size.rows", f"is not a whole number from 1 to {MAX_EXPECTED_ROWS:,}", remedy)
    return rows


def _version(entry: Mapping[str, object], path: str, names: set[str], source: DataSource) -> tuple[str | None, bool]:
    """Read how changes are detected: by a column that increases, or by a checksum of the rows."""
    value = entry.get("version")
    if value is None:
        return None, False
    if not source.engine.is_server:
        reject("HB414", f"{path}.version", "is only for tables on a server", "Remove it: files are hashed.")
    if isinstance(value, Mapping):
        check_keys(value, f"{path}.version", KEYS["datasets.*.version"])
        if source.form != "postgres" or value.get("checksum") is not True:
            why = "can only be a column, or {checksum: true} for a table in PostgreSQL"
            reject("HB414", f"{path}.version", why, "Name a column that increases with every change.")
        return None, True
    if not isinstance(value, str) or value not in names:
        reject("HB414", f"{path}.version", "is not a column", "Name a column that increases with every change.")
    return value, False


def _columns(
    entry: Mapping[str, object],
    path: str,
    fields: tuple[Field, ...],
    ids: frozenset[str | None],
    problems: list[HubbubError],
    needed: frozenset[str],
    *,
    public: bool,
) -> tuple[tuple[Column, ...], tuple[tuple[str, str], ...]]:
    """Read the columns that can be used, and the others with the reason why not; `needed` ones are read if hidden."""
    declared = expect_mapping(entry.get("columns") or {}, f"{path}.columns")
    by_name = {field.name: field for field in fields}
    problems += _unknown_columns(declared, path, by_name)
    columns: list[Column] = []
    disabled: list[tuple[str, str]] = []
    for field in fields:
        is_unit = field.name in ids
        is_key = is_unit or field.name in needed
        # public tables show all columns, private ones only those that the owner has reviewed
        listed = field.name in declared or is_unit or public
        if not listed:
            disabled.append((field.name, "not listed under columns"))
        if not listed and field.name not in needed:
            continue
        where = f"{path}.columns.{field.name}"
        try:
            settings = declared.get(field.name) if listed else {"hidden": True}
            parts = read_list(settings, field, where)
            if parts is not None and not is_key:
                columns += parts
                disabled += [(field.name, "hidden")] if parts[0].hidden else []
                continue
            column = _column(settings, field, where, is_key=is_key)
        except HubbubError as error:
            problems.append(error)
            continue
        if column is None:
            why = f"hubbub does not support its type, {field.type}"
            if field.element is not None:
                why = f"it is a list ({field.type}): declare `elements: 8`, the most elements of a list"
            disabled.append((field.name, why))
            if is_key:
                message = f"{where} cannot be the privacy ID column or a key: {why}."
                problems.append(ConfigError("HB413", message, "Name another column."))
            continue
        columns.append(column)
        if column.hidden and listed:
            disabled.append((field.name, "hidden"))
    return tuple(columns), tuple(disabled)


def _unknown_columns(declared: Mapping[str, object], path: str, known: Mapping[str, Field]) -> Iterator[HubbubError]:
    """Yield an error for each declared column that the source does not have."""
    for name in declared:
        if name not in known:
            try:
                reject_unknown("HB414", f"{path}.columns.{name}", name, "column of the source", known)
            except HubbubError as error:
                yield error


def _column(value: object, field: Field, where: str, *, is_key: bool) -> Column | None:
    column = read_column(value, field, where)
    if column is not None and not column.hidden and field.type.lower().startswith("interval"):
        why = "is an interval, and equal intervals can be written in different ways (1 month, 30 days)"
        reject("HB414", where, why, "Cast it to seconds or to text in a view, or remove it.")
    if column is not None and not column.hidden and field.readable is not None and column.kind not in field.readable:
        why = f"has type {field.type}, which cannot be read as {column.kind.value}"
        reject("HB414", where, why, "Remove its `type`, cast it in a view, or remove the column.")
    why = field.misread(column.kind) if is_key and column is not None else ""
    if why:
        reject("HB413", where, f"cannot be the privacy ID column or a key: {why}", units.ONE_FORM)
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
