"""hubbub: a curator for sensitive data. Answers about the crowd, never about the person."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.answers.release import Release
from hubbub.errors import (
    AccessError,
    BudgetError,
    ConfigError,
    HubbubError,
    LedgerError,
    MechanismError,
    ParameterError,
    QueryError,
    RunError,
    ServerError,
    engine_missing,
)

if TYPE_CHECKING:
    from hubbub.client.async_session import AsyncSession
    from hubbub.client.session import RemoteSession
    from hubbub.curator.session import Session

__version__ = "0.1.0"


def open(path: str | Path = "hubbub.yaml", *, analyst: str | None = None) -> "Session":  # noqa: A001
    """Open the datasets of a hubbub.yaml as one of its analysts (where it has only one, that one)."""
    # imported here: whoever wants a mechanism or an error alone need not load engines and parsers
    try:
        from hubbub.curator.session import open_session
    except ModuleNotFoundError as missing:
        if missing.name != "hubbub.curator":
            raise
        raise engine_missing() from None
    return open_session(path, analyst=analyst)


def connect(
    url: str,
    token: str,
    *,
    timeout: float = 30.0,
    retries: int = 4,
    ca: str | Path | None = None,
    insecure: bool = False,
) -> "RemoteSession":
    """Open a session with a server: the same methods, answers and errors as `open` gives.

    timeout    seconds for one answer of the server; a query that takes longer is waited for, until Ctrl-C cancels it
    retries    how often a request is tried again where the network or the server fails; it is charged once
    ca         a file of certificates to trust, instead of the system's
    insecure   send the token where others can read it: http:// beyond this machine, or TLS that is not verified
    """
    from hubbub.client.session import connect

    return connect(url, token, timeout=timeout, retries=retries, ca=ca, insecure=insecure)


def connect_async(
    url: str,
    token: str,
    *,
    timeout: float = 30.0,
    retries: int = 4,
    ca: str | Path | None = None,
    insecure: bool = False,
) -> "AsyncSession":
    """Open a session with a server, for programs that await: in an `async with` block, or by `await`.

    See `connect` for what the options mean.
    """
    from hubbub.client.async_session import connect_async

    return connect_async(url, token, timeout=timeout, retries=retries, ca=ca, insecure=insecure)


def model(release: Release) -> Any:
    """Make the model that an analysis published, with predict or transform where one expects them.

    It is made of published values alone: using it costs nothing.
    """
    try:
        from hubbub.analyses.registry import model
    except ModuleNotFoundError as missing:
        if missing.name != "hubbub.curator":
            raise
        raise engine_missing() from None
    return model(release)


__all__ = [
    "AccessError",
    "BudgetError",
    "ConfigError",
    "HubbubError",
    "LedgerError",
    "MechanismError",
    "ParameterError",
    "QueryError",
    "Release",
    "RunError",
    "ServerError",
    "__version__",
    "connect",
    "connect_async",
    "model",
    "open",
]
