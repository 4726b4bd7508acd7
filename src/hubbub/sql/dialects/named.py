"""From the name of an engine's dialect to its words."""

from importlib import import_module

from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB


def named(name: str) -> Dialect:
    """Find a dialect; those of heavy engines are imported when they are asked for."""
    if name not in ("postgres", "spark"):
        return {"duckdb": DUCKDB}[name]
    found: Dialect = getattr(import_module(f"hubbub.sql.dialects.{name}"), name.upper())
    return found
