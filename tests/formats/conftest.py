"""A PostgreSQL server for the tests of the formats."""

from tests.accounting.postgres_server import postgres_server

__all__ = ["postgres_server"]
