"""A service over the demo's data behind a PostgreSQL port of this machine."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.server.conftest import lay_out, opened

from hubbub.gateway.listener import Gateway, listen
from hubbub.server.postgres_settings import PostgresSettings
from hubbub.server.service import Service

Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass
class Port:
    """A running port, with a token for everybody."""

    service: Service
    tokens: dict[str, str]
    number: int
    loop: asyncio.AbstractEventLoop
    stack: ExitStack = field(default_factory=ExitStack)

    def dsn(self, who: str = "ana", **options: Any) -> str:
        """The connection string of somebody."""
        parts = {"host": "127.0.0.1", "port": self.number, "user": who, "dbname": "hubbub", "connect_timeout": 10}
        parts |= {"password": self.tokens.get(who, ""), **options}
        return " ".join(f"{name}='{value}'" for name, value in parts.items())

    def connect(self, who: str = "ana", **options: Any) -> Connection:
        """Sign in; every statement is by itself."""
        return self.stack.enter_context(psycopg.connect(self.dsn(who, **options), autocommit=True))

    def spent(self, who: str = "ana") -> float:
        """What an analyst has spent on health."""
        rows = (
            self.connect(who)
            .execute("SELECT spent FROM hubbub.budget WHERE scope = 'analyst' AND dataset = 'health'")
            .fetchall()
        )
        return float(rows[0][0])


@contextmanager
def port(folder: Path, *, configured: dict[str, Any] | None = None, **changes: Any) -> Iterator[Port]:
    """Run a service with a PostgreSQL port; `configured` are its settings, `changes` those of the server."""
    if not (folder / "hubbub.yaml").exists():
        lay_out(folder)
    settings = PostgresSettings(port=0, **(configured or {}))
    service, tokens = opened(folder, postgres=settings, **changes)
    loop = asyncio.new_event_loop()
    started, ended = threading.Event(), asyncio.Event()
    sockets = listen(service.settings)

    async def serve() -> None:
        async with Gateway(service, sockets).running():
            started.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert started.wait(20)
        running = Port(service, tokens, sockets[0].getsockname()[1], loop)
        with running.stack:
            yield running
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(30)
        loop.close()
        for each in sockets:
            each.close()
        service.close()


Starter = Callable[..., Port]


@pytest.fixture(scope="module")
def shared_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Port]:
    """One port for the tests of a module: they must not mind what the others did."""
    with port(tmp_path_factory.mktemp("gateway")) as running:
        yield running


@pytest.fixture
def start_port(tmp_path: Path) -> Iterator[Starter]:
    """Start ports; options are settings. All are stopped at the end."""
    with ExitStack() as stack:
        yield lambda folder=tmp_path, **changes: stack.enter_context(port(folder, **changes))
