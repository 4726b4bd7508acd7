"""hubbub answers SQL queries on sensitive data with differential privacy."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

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
    from hubbub.answers.release import Release
    from hubbub.answers.sandbox_session import SandboxSession
    from hubbub.client.async_session import AsyncSession
    from hubbub.client.session import RemoteSession
    from hubbub.curator.session import Session

__version__ = "0.1.0"


@overload
def open(  # noqa: A001
    path: str | Path = "hubbub.yaml", *, analyst: str | None = None, sandbox: Literal[False] = False
) -> "Session": ...
@overload
def open(  # noqa: A001
    path: str | Path = "hubbub.yaml", *, analyst: str | None = None, sandbox: Literal[True]
) -> "SandboxSession": ...
def open(  # noqa: A001
    path: str | Path = "hubbub.yaml", *, analyst: str | None = None, sandbox: bool = False
) -> "Session | SandboxSession":
    """Open the datasets of a hubbub.yaml as one of its analysts; `analyst` is optional if there is only one.

    With `sandbox`, questions are answered on made-up rows, and nothing is charged.
    """
    # imported here, so that importing a mechanism or an error does not load engines and parsers
    try:
        from hubbub.curator.sandbox_session import open_sandbox
        from hubbub.curator.session import open_session
    except ModuleNotFoundError as missing:
        if missing.name != "hubbub.curator":
            raise
        raise engine_missing() from None
    return open_sandbox(path, analyst=analyst) if sandbox else open_session(path, analyst=analyst)


def connect(
    url: str,
    token: str,
    *,
    timeout: float = 30.0,
    retries: int = 4,
    ca: str | Path | None = None,
    insecure: bool = False,
) -> "RemoteSession":
    """Open a session with a server, with the same methods, answers and errors as `open`.

    timeout    seconds to wait for one HTTP response; the client polls for longer queries until Ctrl-C cancels them
    retries    maximum number of retries after network or server failures; a retried query is charged once
    ca         a PEM file of certificates to trust instead of the system's
    insecure   allow http:// to other machines, and TLS without verification: others can then read the token
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
    """Open an asynchronous session with a server: use it in an `async with` block, or `await` it.

    See `connect` for the arguments.
    """
    from hubbub.client.async_session import connect_async

    return connect_async(url, token, timeout=timeout, retries=retries, ca=ca, insecure=insecure)


def model(release: "Release") -> Any:
    """Return the model that an analysis published, with `predict` or `transform` methods.

    It depends only on published values, so using it is free.
    """
    try:
        from hubbub.analyses.registry import model
    except ModuleNotFoundError as missing:
        if missing.name != "hubbub.curator":
            raise
        raise engine_missing() from None
    return model(release)


def load_ipython_extension(shell: Any) -> None:
    """Register the notebook magics: `%load_ext hubbub`, then `%%hubbub --epsilon 0.1` before a query."""
    from hubbub.client.magics import load

    load(shell)


def __getattr__(name: str) -> Any:
    """Import `Release` when it is first used, so that the command line and the client start quickly."""
    if name == "Release":
        from hubbub.answers.release import Release

        return Release
    raise AttributeError(f"module 'hubbub' has no attribute {name!r}")


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
