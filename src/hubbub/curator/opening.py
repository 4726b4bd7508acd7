"""Open a curator from hubbub.yaml.

Tested in tests/curator/test_exposure.py.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from hubbub.accounting.anchor import Anchor, FileAnchor, TwoAnchors, default_path, former_path
from hubbub.accounting.declarations import problems
from hubbub.accounting.ledger import Ledger, now
from hubbub.accounting.sqlite import SqliteStore, reserve
from hubbub.accounting.store import Store
from hubbub.accounting.witness import WitnessedAnchor, open_witness
from hubbub.config import Config
from hubbub.core.schema import Table
from hubbub.curator import Curator, keys
from hubbub.curator import exposure as custody
from hubbub.curator.draws import Draws
from hubbub.curator.public import read_public_table
from hubbub.curator.public_rows import count_rows
from hubbub.curator.seeds import Seeds, seed_folder
from hubbub.curator.versions import Versions
from hubbub.engines.base import Engine
from hubbub.engines.multi_engine import engine_for, open_engine
from hubbub.errors import ConfigError
from hubbub.private_files import create_folder


def is_postgres(config: Config) -> bool:
    """Return whether the ledger is in PostgreSQL."""
    return (config.places.database or "").startswith(("postgresql://", "postgres://"))


def store_of(config: Config, *, read_only: bool = False, exclusive: bool = False, guard: int | None = None) -> Store:
    """Open the ledger's database; `exclusive` locks a database file against other processes, `guard` shares a lock."""
    if is_postgres(config):
        from hubbub.accounting.postgres import PostgresStore

        return PostgresStore(config.places.database or "", read_only=read_only)
    if not read_only:
        create_folder(config.database.parent)
    return SqliteStore(config.database, read_only=read_only, exclusive=exclusive, guard=guard)


def anchor_of(config: Config) -> Anchor:
    """Give the ledger's anchor, with its witness if there is one."""
    anchor, place = _anchor(config), config.places.witness
    return anchor if place is None else WitnessedAnchor(anchor, open_witness(place, config.path.parent))


def _anchor(config: Config) -> Anchor:
    if config.places.anchor is not None:
        return FileAnchor(config.path.parent / config.places.anchor)
    if is_postgres(config):
        raise ConfigError(
            "HB402",
            "ledger.anchor is required for a ledger in PostgreSQL.",
            "Set it to a file outside that server: `anchor: /var/lib/hubbub/ledger.anchor`.",
        )
    home, earlier = FileAnchor(default_path(config.database)), former_path(config.database)
    return TwoAnchors(home, FileAnchor(earlier)) if earlier.exists() else home


def exposed_files(config: Config) -> list[Path]:
    """List the files and folders of this configuration that other users can access."""
    return custody.exposed_files(config, folder_of(config), Path(anchor_of(config).where))


def storage_warnings(config: Config) -> list[str]:
    """Give warnings about where ledger and anchor are stored."""
    anchor = Path(anchor_of(config).where)
    warnings = [
        f"Other users can access {path}; the next start removes their permissions." for path in exposed_files(config)
    ]
    if not is_postgres(config):
        warnings += [text for text in [custody.anchor_warning(folder_of(config), anchor)] if text]
        if config.places.anchor is None and former_path(config.database).exists():
            warnings.append(
                f"{former_path(config.database)} is the anchor of an earlier version of hubbub. It is still updated "
                f"along with {anchor}; remove it if the new location is permanent."
            )
    return warnings


def unreadable_values(config: Config) -> list[str]:
    """Warn of columns of CSV files and of folders whose values cannot be read as declared, for the owner alone."""
    warnings = []
    for name, dataset in config.datasets.items():
        if dataset.place.form not in ("csv", "hive"):
            continue
        from hubbub.engines.duckdb.unreadable import unreadable, unreadable_folders

        kinds = {column.name: column.kind for column in dataset.table.columns if not column.hidden}
        if dataset.place.form == "hive":
            total, wrong = unreadable_folders(dataset.place, kinds)
            warnings += [
                f"{name}: {count:,} of the names of its {total:,} folders cannot be read as {kinds[column].value}, and"
                f" {column} is NULL in their rows. Rename these folders, or correct the type. Only you see this count."
                for column, count in wrong.items()
            ]
            continue
        looked, counts = unreadable(dataset.place, kinds)
        warnings += [
            f"{name}: {count:,} of the first {looked:,} values of {column} cannot be read as {kinds[column].value}, and"
            " queries see NULL in their place. Correct the type or the file: decimals have a point, dates are written"
            " 2024-12-31 (docs/guides/csv-files.md converts others). Only you see this count."
            for column, count in counts.items()
        ]
    return warnings


def folder_of(config: Config) -> Path:
    """Give the folder of the files that are stored beside the ledger."""
    return config.path.parent / "hubbub-ledger" if is_postgres(config) else config.database.parent


def seeds_of(config: Config, ledger: str) -> Seeds:
    """Open the seed folder for the ledger with this identity."""
    chosen = None if config.places.seeds is None else config.path.parent / config.places.seeds
    return Seeds(seed_folder(chosen, folder_of(config)), ledger)


def reserve_ledger(config: Config) -> int | None:
    """Lock the ledger's file for this process and its children; None for a ledger in PostgreSQL."""
    if is_postgres(config):
        return None
    create_folder(config.database.parent)
    return reserve(config.database, exclusive=True)


def open_curator(
    config: Config, *, exclusive: bool = False, guard: int | None = None, clock: Callable[[], int] = now
) -> Curator:
    """Open ledger and engine. Private data is not read before the first charge; `clock` gives microseconds."""
    tables, folder = tables_of(config), folder_of(config)
    create_folder(folder)
    custody.restrict(exposed_files(config))
    store = store_of(config, exclusive=exclusive, guard=guard)
    try:
        seeds = seeds_of(config, store.ledger)
        ledger = Ledger.open(store, policy=config.policy, anchor=anchor_of(config), clock=clock)
        with ledger.snapshot() as snapshot:
            seeds.sweep(lambda charge: bool(snapshot.released(charge, charge)))
    except BaseException:
        store.close()
        raise
    return Curator(
        config,
        tables,
        ledger=ledger,
        engine=_engine(config),
        versions=Versions(folder / "versions.json"),
        draws=Draws(seeds),
        salt=store.ledger,
    )


def reconfigure(curator: Curator, config: Config) -> Curator:
    """Use another hubbub.yaml on the same ledger; the old curator's engine stays open for running queries."""
    tables = tables_of(config)
    curator.ledger.govern(config.policy)
    return curator.under(config, tables, _engine(config))


def policy_problems(config: Config) -> list[ConfigError]:
    """List how a hubbub.yaml would contradict earlier charges; empty if there is no ledger yet."""
    if not is_postgres(config) and not config.database.exists():
        return []
    store = store_of(config, read_only=True)
    try:
        with store.snapshot() as snapshot:
            return problems(snapshot, config.policy)
    finally:
        store.close()


def tables_of(config: Config) -> dict[str, Table]:
    """Give the schema of every table; that of a public table is completed from its values."""
    return {
        name: read_public_table(each, config.limits) if each.table.public else each.table
        for name, each in config.datasets.items()
    }


def count_public_rows(config: Config, name: str) -> int:
    """Count the rows of a dataset whose number of rows is public."""
    engine = _engine(config)
    try:
        return count_rows(config.datasets[name].table, engine_for(engine, [name]))
    finally:
        engine.close()


def key_problems(config: Config, names: Iterable[str]) -> list[ConfigError]:
    """List the datasets, of these, whose declared key is not unique. It reads their data, for the owner."""
    tables = [config.datasets[name].table for name in names]
    if not any(table.unit is not None and table.unique is not None for table in tables):
        return []
    engine = _engine(config)
    try:
        return keys.key_problems(tables, engine)
    finally:
        engine.close()


def _engine(config: Config) -> Engine:
    public = frozenset(name for name, each in config.datasets.items() if each.table.public)
    return open_engine([each.view for each in config.datasets.values()], public, limits=config.limits)
