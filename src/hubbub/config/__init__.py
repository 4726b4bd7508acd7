"""hubbub.yaml: where the data is, what it looks like, who is protected; with the policy, one document and one reader.

What the owner declares is compared with what the source says of itself (names and types, never values). Everything
that is wrong is collected, so that `hubbub check` can say all of it at once; `load` raises the first.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from hubbub.accounting.policy import Policy
from hubbub.config.columns import resolve
from hubbub.config.declaration import declaration
from hubbub.config.document import (
    KEYS,
    check_keys,
    expect_mapping,
    expect_names,
    is_name,
    parse_yaml,
    reject,
    reject_unknown,
)
from hubbub.config.policy import LedgerPaths, ledger_paths, read_policy
from hubbub.core import numbers
from hubbub.core.schema import Column, PrivacyUnit, Table
from hubbub.core.unit import Hash, Relation
from hubbub.engines.base import SERVERS, Field, DataSource, View, locate
from hubbub.engines.base import EngineLimits
from hubbub.engines.multi_engine import read_schema
from hubbub.errors import ConfigError, HubbubError

MOST_GROUPS = 10**6
MOST_ROWS = 10**9
#: Each failure can tell a bit about the data, so an owner allows few: see `hubbub.accounting.failures`.
FAILURES, MOST_FAILURES = 3, 1000
#: Values of a release: by default, and at most. At 128 bytes each, the ledger's databases take no more.
MOST_CELLS, MOST_MAX_CELLS = 1_000_000, 3_900_000


@dataclass(frozen=True, slots=True)
class Dataset:
    """One table of hubbub.yaml, as declared and as found; `disabled` says which columns cannot be used, and why."""

    table: Table
    place: DataSource
    disabled: tuple[tuple[str, str], ...] = ()
    version: str | None = None  #: a column that rises with every change
    failures: int = FAILURES  #: queries of one analyst that may fail after their charge before the owner must look

    @property
    def view(self) -> View:
        """What the engine shall serve: hidden columns are not even there, unless one is the unit."""
        unit = self.table.unit.column if self.table.unit else None
        shown = [(c.name, c.kind) for c in self.table.columns if not c.hidden or c.name == unit]
        return View(self.table.name, self.place, tuple(shown), self.version)


@dataclass(frozen=True)
class Config:
    """All of hubbub.yaml, checked."""

    path: Path
    hash: str
    datasets: Mapping[str, Dataset]
    policy: Policy
    places: LedgerPaths
    limits: EngineLimits
    hashing: Hash = "engine"
    max_cells: int = MOST_CELLS

    @property
    def database(self) -> Path:
        """Where the ledger is: by default in a folder of its own beside hubbub.yaml."""
        return self.path.parent / (self.places.database or "hubbub-ledger/ledger.db")


def load(path: Path) -> Config:
    """Read a hubbub.yaml, or raise the first thing that is wrong with it."""
    config, problems = examine(path)
    if config is None:
        raise problems[0]
    return config


def examine(path: Path) -> tuple[Config | None, list[HubbubError]]:
    """Read a hubbub.yaml and the schemas of its sources; give the config, or everything that is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else "cannot be read"
        return None, [ConfigError("HB410", f"{path} {why}.", "Make one with: hubbub init your-data.parquet")]
    problems: list[HubbubError] = []
    datasets: dict[str, Dataset] = {}
    policy, places, limits = None, None, EngineLimits()
    hashing: Hash = "engine"
    cells = MOST_CELLS
    try:
        document = parse_yaml(text)
        entries = _datasets(document)
    except HubbubError as error:
        return None, [error]
    problems += _blanks(document)
    problems += _doubles(entries)
    for name, entry in entries.items():
        found = _dataset(name, entry, path.parent, problems)
        if found is not None:
            datasets[name] = found
    try:
        limits = _limits(document)
        hashing = _hashing(document)
        cells = _max_cells(document)
        if any(problem.code == "HB418" for problem in problems):
            return None, problems
        policy = read_policy(document)
        places = ledger_paths(document)
    except HubbubError as error:
        problems.append(error)
    if problems or policy is None or places is None:
        return None, problems
    digest = sha256(text.encode()).hexdigest()
    policy = replace(policy, declarations={name: declaration(each.table) for name, each in datasets.items()})
    return Config(path, digest, datasets, policy, places, limits, hashing, cells), []


def _datasets(document: object) -> Mapping[str, object]:
    top = expect_mapping(document, "")
    check_keys(top, "", KEYS[""])
    return expect_names(top.get("datasets"), "datasets")


def _blanks(document: object) -> list[HubbubError]:
    """Find the ε that are still empty, as `hubbub init` leaves them."""
    found: list[HubbubError] = []

    def look(value: object, path: str) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                if key == "epsilon" and inner is None:
                    remedy = "Write how much may be learned: 1 is a strong promise, 6 a weak one."
                    found.append(ConfigError("HB418", f"{path}.epsilon is still blank.", remedy))
                look(inner, f"{path}.{key}".lstrip("."))

    look(document, "")
    return found


def _doubles(entries: Mapping[str, object]) -> list[HubbubError]:
    """Find names that differ in case alone: SQL takes them for one."""
    folded = [name.lower() for name in entries]
    return [
        ConfigError("HB408", f"datasets.{name} has the name of another dataset but for case.", "Rename one of them.")
        for name in entries
        if folded.count(name.lower()) > 1
    ]


def _limits(document: object) -> EngineLimits:
    entries = expect_mapping(expect_mapping(document, "").get("engine", {}), "engine")
    check_keys(entries, "engine", KEYS["engine"])
    entries = {key: value for key, value in entries.items() if key != "hash"}
    ranges = {"memory": (100, 10**7), "disk": (0, 10**8), "threads": (1, 1024), "seconds": (1, 86_400)}
    try:
        return EngineLimits(**{k: numbers.integer(v, f"engine.{k}", *ranges[k]) for k, v in entries.items()})
    except HubbubError as error:
        raise ConfigError("HB417", error.message, error.remedy) from None


def _max_cells(document: object) -> int:
    """Read how many values a release may have."""
    value = expect_mapping(document, "").get("max_cells", MOST_CELLS)
    try:
        return numbers.integer(value, "max_cells", 1, MOST_MAX_CELLS)
    except HubbubError as error:
        raise ConfigError("HB417", error.message, error.remedy) from None


def _hashing(document: object) -> Hash:
    """Read by which hash surplus rows are chosen: the engine's own, or one that all engines share."""
    value = expect_mapping(expect_mapping(document, "").get("engine", {}), "engine").get("hash", "engine")
    if value not in ("engine", "portable"):
        reject("HB417", "engine.hash", "is not a known hash", "Write `engine` (fast) or `portable`.")
    return "portable" if value == "portable" else "engine"


def _dataset(name: str, value: object, base: Path, problems: list[HubbubError]) -> Dataset | None:
    """Read one dataset; what is wrong goes to `problems`, column by column."""
    path = f"datasets.{name}"
    before = len(problems)
    try:
        entry = expect_mapping(value, path)
        check_keys(entry, path, KEYS["datasets.*"])
        place = locate(entry.get("source"), f"{path}.source", base=base, name=name)
        fields = read_schema(place)
        public = entry.get("public", False) is True
        unit, relation = _unit(entry, path, {field.name for field in fields}, public=public)
        _tells_apart(unit, fields, path)
        columns, disabled = _columns(entry, path, fields, unit, problems, public=public)
        unique = _unique(entry, path, {c.name for c in columns}, public=public)
        version = _version(entry, path, {field.name for field in fields}, place)
        failures = _integer(entry.get("failures", FAILURES), f"{path}.failures", MOST_FAILURES)
        arrivals = _arrivals(entry, path, public=public)
    except HubbubError as error:
        problems.append(error)
        return None
    if len(problems) > before:
        return None
    table = Table(name, columns, unit, relation, unique, arrivals)
    return Dataset(table, place, disabled, version, failures)


def _arrivals(entry: Mapping[str, object], path: str, *, public: bool) -> bool:
    """Read whether the number of arrivals in streams of a dataset is public."""
    value = entry.get("arrivals")
    if value is not None and (value != "public" or public):
        reject(
            "HB437",
            f"{path}.arrivals",
            "can only be `public`, in a private dataset",
            "Write `arrivals: public` if anybody may know how many arrivals its streams take, or leave it out.",
        )
    return value is not None


def _version(entry: Mapping[str, object], path: str, names: set[str], place: DataSource) -> str | None:
    value = entry.get("version")
    if value is None:
        return None
    if place.form not in SERVERS:
        reject("HB414", f"{path}.version", "is for tables of a server", "Leave it out: files are hashed.")
    if not isinstance(value, str) or value not in names:
        reject("HB414", f"{path}.version", "does not name a column", "Name one that rises with every change.")
    return value


def _unit(entry: Mapping[str, object], path: str, names: set[str], *, public: bool) -> tuple[PrivacyUnit | None, Relation]:
    if public:
        for key in ("unit", "relation"):
            if key in entry:
                reject("HB413", f"{path}.{key}", "protects somebody in public data", f"Leave out `{key}`.")
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
            "does not say who is protected",
            "Write `unit: {column: patient_id, groups: 1, rows: 1}` to protect everything of one patient, or"
            " `unit: row` where nobody has more than one row.",
        )
    terms = expect_mapping(value, f"{path}.unit")
    check_keys(terms, f"{path}.unit", KEYS["datasets.*.unit"])
    column_name = terms.get("column")
    if not isinstance(column_name, str) or column_name not in names:
        if isinstance(column_name, str):
            reject_unknown("HB413", f"{path}.unit.column: {column_name}", column_name, "column of the source", names)
        reject("HB413", f"{path}.unit.column", "is missing", "Name the column that says whose row it is.")
    entity = terms.get("entity", "")
    if not isinstance(entity, str) or ("entity" in terms and not is_name(entity)):
        reject(
            "HB413", f"{path}.unit.entity", "is not a name", "Write one word, the same in every table of these people."
        )
    return (
        PrivacyUnit(
            column_name,
            _integer(terms.get("groups", 1), f"{path}.unit.groups", MOST_GROUPS),
            _integer(terms.get("rows", 1), f"{path}.unit.rows", MOST_ROWS),
            entity,
        ),
        Relation(relation),
    )


_WRITTEN_ONCE = "Name another column, or make one in a view that writes each unit in one way."


def _tells_apart(unit: PrivacyUnit | None, fields: tuple[Field, ...], path: str) -> None:
    """Refuse a unit's column in which one person could be two, or two one."""
    for field in fields:
        if unit is not None and field.name == unit.column and field.unfit:
            refused = f"cannot be {field.name}: {field.unfit}"
            reject("HB413", f"{path}.unit.column", refused, _WRITTEN_ONCE)


def _integer(value: object, path: str, most: int) -> int:
    try:
        return numbers.integer(value, path, 1, most)
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
    listed = expect_mapping(entry.get("columns") or {}, f"{path}.columns")
    by_name = {field.name: field for field in fields}
    for name in listed:
        if name not in by_name:
            try:
                reject_unknown("HB414", f"{path}.columns.{name}", name, "column of the source", by_name)
            except HubbubError as error:
                problems.append(error)
    columns: list[Column] = []
    disabled: list[tuple[str, str]] = []
    for field in fields:
        is_unit = unit is not None and field.name == unit.column
        # public tables show everything; private ones only what the owner has looked at
        if field.name not in listed and not is_unit and not public:
            disabled.append((field.name, "not listed under columns"))
            continue
        where = f"{path}.columns.{field.name}"
        try:
            found = _resolved(listed.get(field.name), field, where, is_unit=is_unit)
        except HubbubError as error:
            problems.append(error)
            continue
        if found is None:
            disabled.append((field.name, f"its type, {field.type}, is not one that hubbub can use"))
            if is_unit:
                problems.append(
                    ConfigError("HB413", f"{where} cannot be the unit: {disabled[-1][1]}.", "Name another.")
                )
            continue
        columns.append(found)
        if found.hidden:
            disabled.append((field.name, "hidden"))
    return tuple(columns), tuple(disabled)


def _resolved(value: object, field: Field, where: str, *, is_unit: bool) -> Column | None:
    found = resolve(value, field, where)
    if found is not None and not found.hidden and field.type.lower().startswith("interval"):
        refused = "is an interval, and equal intervals are written in different ways (1 month, 30 days)"
        reject("HB414", where, refused, "Cast it in a view, to seconds or to text, or leave it out.")
    why = field.misread(found.kind) if is_unit and found is not None else ""
    if why:
        reject("HB413", where, f"cannot be the unit: {why}", _WRITTEN_ONCE)
    return found


def _unique(entry: Mapping[str, object], path: str, names: set[str], *, public: bool) -> tuple[str, ...] | None:
    value = entry.get("unique")
    if value is None:
        return None
    if not public:
        reject("HB414", f"{path}.unique", "is for public tables", "Leave it out: nobody checks it here.")
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not listed or not all(isinstance(n, str) and n in names for n in listed):
        reject("HB414", f"{path}.unique", "does not name columns of the table", "Write `unique: [id]`.")
    return tuple(listed)
