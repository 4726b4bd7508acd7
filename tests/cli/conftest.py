"""A PostgreSQL server for the ledgers of commands."""

from tests.accounting.postgres_server import postgres_dsn, postgres_server

__all__ = ["postgres_dsn", "postgres_server"]
