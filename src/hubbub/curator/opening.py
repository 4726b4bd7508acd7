"""Opening: from hubbub.yaml to a curator that can answer, or a clear error."""

from pathlib import Path

from hubbub.accounting.anchor import Anchor, FileAnchor, TwoAnchors, default_path, former_path
from hubbub.accounting.declarations import problems
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.store import Store
from hubbub.config import Config
from hubbub.core.schema import Table
from hubbub.curator import Curator
from hubbub.curator import exposure as custody
from hubbub.curator.draws import Draws
from hubbub.curator.public import public
from hubbub.curator.seeds import Seeds, place
from hubbub.curator.versions import Versions
from hubbub.engines.base import Engine
from hubbub.engines.multi_engine import open_engine
from hubbub.errors import ConfigError
from hubbub.private_files import create_folder


def is_postgres(config: Config) -> bool:
    """Say whether the ledger is in PostgreSQL."""
    return (config.places.database or "").startswith(("postgresql://", "postgres://"))


def store_of(config: Config, *, read_only: bool = False, exclusive: bool = False) -> Store:
    """Open the ledger's database; `exclusive` keeps other processes away where it is a file (a server shares none)."""
    if is_postgres(config):
        from hubbub.accounting.postgres import PostgresStore

        return PostgresStore(config.places.database or "", read_only=read_only)
    if not read_only:
        create_folder(config.database.parent)
    return SqliteStore(config.database, read_only=read_only, exclusive=exclusive)


def anchor_of(config: Config) -> Anchor:
    """Find the ledger's anchor."""
    if config.places.anchor is not None:
        return FileAnchor(config.path.parent / config.places.anchor)
    if is_postgres(config):
        raise ConfigError(
            "HB402",
            "ledger.anchor is missing, and the ledger is in PostgreSQL.",
            "Name a file outside that server: `anchor: /var/lib/hubbub/ledger.anchor`.",
        )
    home, earlier = FileAnchor(default_path(config.database)), former_path(config.database)
    return TwoAnchors(home, FileAnchor(earlier)) if earlier.exists() else home


def exposed(config: Config) -> list[Path]:
    """List what hubbub keeps for this configuration and others have rights on."""
    return custody.exposed(config, folder_of(config), Path(anchor_of(config).where))


def concerns(config: Config) -> list[str]:
    """Say what an owner should know about the ledger's place and its anchor's."""
    anchor = Path(anchor_of(config).where)
    found = [f"Others have rights on {path}; the next start takes them away." for path in exposed(config)]
    if not is_postgres(config):
        found += [text for text in [custody.together(folder_of(config), anchor)] if text]
        if config.places.anchor is None and former_path(config.database).exists():
            found.append(
                f"{former_path(config.database)} is the anchor of an earlier version. It is kept up to date beside "
                f"{anchor}; remove it if that place lasts."
            )
    return found


def folder_of(config: Config) -> Path:
    """Find the folder for what is kept beside the ledger."""
    return config.path.parent / "hubbub-ledger" if is_postgres(config) else config.database.parent


def seeds_of(config: Config, ledger: str) -> Seeds:
    """Open the folder of seeds for the ledger of this identity."""
    chosen = None if config.places.seeds is None else config.path.parent / config.places.seeds
    return Seeds(place(chosen, folder_of(config)), ledger)


def open_curator(config: Config, *, exclusive: bool = False) -> Curator:
    """Open ledger and engine. Private data is not touched: that waits for the first charge."""
    tables, folder = tables_of(config), folder_of(config)
    create_folder(folder)
    custody.close(exposed(config))
    store = store_of(config, exclusive=exclusive)
    try:
        seeds = seeds_of(config, store.ledger)
        ledger = Ledger.open(store, policy=config.policy, anchor=anchor_of(config))
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


def renewed(curator: Curator, config: Config) -> Curator:
    """Go on with the same ledger under another hubbub.yaml; the old curator's engine stays open for its queries."""
    tables = tables_of(config)
    curator.ledger.govern(config.policy)
    return curator.under(config, tables, _engine(config))


def broken(config: Config) -> list[ConfigError]:
    """Say which promises of earlier charges a hubbub.yaml would break; none where there is no ledger yet."""
    if not is_postgres(config) and not config.database.exists():
        return []
    store = store_of(config, read_only=True)
    try:
        with store.snapshot() as snapshot:
            return problems(snapshot, config.policy)
    finally:
        store.close()


def tables_of(config: Config) -> dict[str, Table]:
    """Give every table as it is planned with: public ones with the facts of their values."""
    return {
        name: public(each, config.limits) if each.table.public else each.table for name, each in config.datasets.items()
    }


def _engine(config: Config) -> Engine:
    public = frozenset(name for name, each in config.datasets.items() if each.table.public)
    return open_engine([each.view for each in config.datasets.values()], public, limits=config.limits)
