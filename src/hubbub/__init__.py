"""hubbub: a curator for sensitive data. Answers about the crowd, never about the person."""

from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.core.release import Release
from hubbub.errors import (
    BudgetError,
    ConfigError,
    HubbubError,
    LedgerError,
    MechanismError,
    ParameterError,
    QueryError,
    RunError,
)

if TYPE_CHECKING:
    from hubbub.curator.session import Session

__version__ = "0.1.0"


def open(path: str | Path = "hubbub.yaml", *, analyst: str | None = None) -> "Session":  # noqa: A001
    """Open the data sets of a hubbub.yaml as one of its analysts (where it has only one, that one)."""
    # imported here: whoever wants a mechanism or an error alone need not load engines and parsers
    from hubbub.curator.session import open_session

    return open_session(path, analyst=analyst)


__all__ = [
    "BudgetError",
    "ConfigError",
    "HubbubError",
    "LedgerError",
    "MechanismError",
    "ParameterError",
    "QueryError",
    "Release",
    "RunError",
    "__version__",
    "open",
]
