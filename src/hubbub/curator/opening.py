"""Opening: from hubbub.yaml to a curator that can answer, or a clear error."""

from pathlib import Path

from hubbub.accounting.anchor import Anchor, FileAnchor, beside
from hubbub.accounting.declared import problems
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.store import Store
from hubbub.config import Config
from hubbub.core.schema import Table
from hubbub.curator import Curator
from hubbub.curator.public import public
from hubbub.curator.versions import Versions
from hubbub.engines.base import Engine
from hubbub.engines.several import open_engine
from hubbub.errors import ConfigError
from hubbub.noise.source import system


def is_postgres(config: Config) -> bool:
    """Say whether the ledger is in PostgreSQL."""
    return (config.places.database or "").startswith(("postgresql://", "postgres://"))


def store_of(config: Config, *, read_only: bool = False, exclusive: bool = False) -> Store:
    """Open the ledger's database; `exclusive` keeps other processes away where it is a file (a server shares none)."""
    if is_postgres(config):
        from hubbub.accounting.postgres import PostgresStore

        return PostgresStore(config.places.database or "", read_only=read_only)
    if not read_only:
        config.database.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return SqliteStore(config.database, read_only=read_only, exclusive=exclusive)


def anchor_of(config: Config) -> Anchor:
    """Find the ledger's anchor."""
    if config.places.anchor is not None:
        return FileAnchor(config.path.parent / config.places.anchor)
    if is_postgres(config):
        raise ConfigError(
            "HB402", "ledger.anchor is missing, and the ledger is in PostgreSQL.",
            "Name a file outside that server: `anchor: /var/lib/hubbub/ledger.anchor`.",
        )  # fmt: skip
    return FileAnchor(beside(config.database))


def folder_of(config: Config) -> Path:
    """Find the folder for what is kept beside the ledger."""
    return config.path.parent / "hubbub-ledger" if is_postgres(config) else config.database.parent


def open_curator(config: Config, *, exclusive: bool = False) -> Curator:
    """Open ledger and engine. Private data is not touched: that waits for the first charge."""
    tables, folder = tables_of(config), folder_of(config)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    store = store_of(config, exclusive=exclusive)
    try:
        ledger = Ledger.open(store, policy=config.policy, anchor=anchor_of(config))
    except BaseException:
        store.close()
        raise
    return Curator(
        config, tables, ledger=ledger, engine=_engine(config), versions=Versions(folder / "versions.json"),
        source=system(), salt=store.ledger,
    )  # fmt: skip


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
