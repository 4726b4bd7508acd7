"""All reading of hubbub.yaml: data sources, columns, privacy units, budgets, and the policy made of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from hubbub.accounting.policy import Policy
from hubbub.config import ownership
from hubbub.config.dataset import DatasetConfig, read_dataset
from hubbub.config.declaration import declare
from hubbub.config.document import KEYS, check_keys, expect_mapping, expect_names, parse_yaml, reject
from hubbub.config.policy import LedgerPaths, ledger_paths, read_policy
from hubbub.core import numbers
from hubbub.core.unit import Hash
from hubbub.engines.base import EngineLimits
from hubbub.errors import ConfigError, HubbubError

#: Values in one release. At 128 bytes each, the ledger's databases cannot store more than the highest setting.
DEFAULT_MAX_CELLS, HIGHEST_MAX_CELLS = 30_000_000, 100_000_000


@dataclass(frozen=True)
class Config:
    """A checked hubbub.yaml."""

    path: Path
    hash: str
    datasets: Mapping[str, DatasetConfig]
    policy: Policy
    places: LedgerPaths
    limits: EngineLimits
    hashing: Hash = "engine"
    max_cells: int = DEFAULT_MAX_CELLS

    @property
    def database(self) -> Path:
        """The path of the ledger; by default in its own folder next to hubbub.yaml."""
        return self.path.parent / (self.places.database or "hubbub-ledger/ledger.db")


def load(path: Path) -> Config:
    """Read a hubbub.yaml, or raise the first error in it."""
    config, problems = examine(path)
    if config is None:
        raise problems[0]
    return config


def examine(path: Path) -> tuple[Config | None, list[HubbubError]]:
    """Read a hubbub.yaml and the schemas of its sources; return the configuration, or all errors."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else "cannot be read"
        return None, [ConfigError("HB410", f"{path} {why}.", "Create one with: hubbub init your-data.parquet")]
    try:
        document = parse_yaml(text)
        top = expect_mapping(document, "")
        check_keys(top, "", KEYS[""])
        entries = expect_names(top.get("datasets"), "datasets")
    except HubbubError as error:
        return None, [error]
    problems = [*_blank_epsilons(document), *_ambiguous_names(entries)]
    datasets: dict[str, DatasetConfig] = {}
    for name in ownership.in_order(entries, problems):
        if not ownership.waits_for_missing(entries, name, datasets):
            dataset = read_dataset(name, entries[name], path.parent, problems, datasets)
            datasets |= {} if dataset is None else {name: dataset}
    datasets = {name: datasets[name] for name in entries if name in datasets}
    try:
        limits, hashing, max_cells = _engine_limits(top), _hashing(top), _max_cells(top)
        if any(problem.code == "HB418" for problem in problems):
            return None, problems
        policy, paths = read_policy(document), ledger_paths(document)
    except HubbubError as error:
        return None, [*problems, error]
    if problems:
        return None, problems
    digest = sha256(text.encode()).hexdigest()
    policy = replace(policy, declarations={name: declare(dataset.table) for name, dataset in datasets.items()})
    return Config(path, digest, datasets, policy, paths, limits, hashing, max_cells), []


def _blank_epsilons(document: object, path: str = "") -> list[HubbubError]:
    """Find each ε that is still empty, as `hubbub init` leaves it."""
    problems: list[HubbubError] = []
    if isinstance(document, dict):
        for key, value in document.items():
            if key == "epsilon" and value is None:
                remedy = "Set the privacy budget: ε = 1 is a strong guarantee, ε = 6 a weak one."
                problems.append(ConfigError("HB418", f"{path}.epsilon is still blank.", remedy))
            problems += _blank_epsilons(value, f"{path}.{key}".lstrip("."))
    return problems


def _ambiguous_names(entries: Mapping[str, object]) -> list[HubbubError]:
    """Find names that differ only in case, which SQL ignores."""
    folded = [name.lower() for name in entries]
    return [
        ConfigError("HB408", f"datasets.{name} differs from another dataset only in case.", "Rename one of them.")
        for name in entries
        if folded.count(name.lower()) > 1
    ]


def _engine(top: Mapping[str, object]) -> dict[str, object]:
    entries = expect_mapping(top.get("engine", {}), "engine")
    check_keys(entries, "engine", KEYS["engine"])
    return entries


def _engine_limits(top: Mapping[str, object]) -> EngineLimits:
    ranges = {"memory": (100, 10**7), "disk": (0, 10**8), "threads": (1, 1024), "seconds": (1, 86_400)}
    entries = {key: value for key, value in _engine(top).items() if key not in ("hash", "copy")}
    copy = _engine(top).get("copy", False)
    if not isinstance(copy, bool):
        reject("HB417", "engine.copy", "is not true or false", "Write `true` to query copies of PostgreSQL tables.")
    numbers_of = {key: _integer(value, f"engine.{key}", *ranges[key]) for key, value in entries.items()}
    return EngineLimits(**numbers_of, copy=copy is True)


def _max_cells(top: Mapping[str, object]) -> int:
    """Read the maximum number of values in one release."""
    return _integer(top.get("max_cells", DEFAULT_MAX_CELLS), "max_cells", 1, HIGHEST_MAX_CELLS)


def _hashing(top: Mapping[str, object]) -> Hash:
    """Read which hash chooses the rows that exceed a contribution bound: the engine's, or the portable one."""
    value = _engine(top).get("hash", "engine")
    if value not in ("engine", "portable"):
        reject("HB417", "engine.hash", "is not a known hash", "Write `engine` (fast) or `portable`.")
    return "portable" if value == "portable" else "engine"


def _integer(value: object, path: str, low: int, high: int) -> int:
    try:
        return numbers.integer(value, path, low, high)
    except HubbubError as error:
        raise ConfigError("HB417", error.message, error.remedy) from None
