"""One analyst's session of each kind: embedded, with a server, and with a server by `await`."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import Starter, World, lay_out, start_served  # noqa: F401 - a fixture

import hubbub
from hubbub.client.async_session import AsyncSession

KINDS = ("embedded", "served", "async")

#: Opens a session of a kind as an analyst, on a folder with the demo's data.
Opener = Callable[..., Any]


class Awaited:
    """An asynchronous session whose every method is awaited at once."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session
        self._runner = asyncio.Runner()
        self._opened = self._runner.run(self._open())
        self.analyst = session.analyst

    async def _open(self) -> AsyncSession:
        return await self._session

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._session, name)

        def awaited(*args: Any, **options: Any) -> Any:
            return self._runner.run(method(*args, **options))

        return awaited

    def end(self) -> None:
        self._runner.run(self._session.close())
        self._runner.close()


@pytest.fixture
def opener(start_served: Starter, tmp_path: Path) -> Iterator[Opener]:  # noqa: F811
    """Open sessions, all of them closed at the end; with a server there is one for all."""
    worlds: dict[Path, World] = {}
    with ExitStack() as stack:

        def opened(kind: str, analyst: str = "ana", folder: Path = tmp_path) -> Any:
            folder.mkdir(exist_ok=True)
            if kind == "embedded":
                if not (folder / "hubbub.yaml").exists():
                    lay_out(folder)
                return stack.enter_context(hubbub.open(folder / "hubbub.yaml", analyst=analyst))
            world = worlds.get(folder) or start_served(folder)
            worlds[folder] = world
            if kind == "served":
                return stack.enter_context(hubbub.connect(world.url, world.tokens[analyst]))
            session = Awaited(hubbub.connect_async(world.url, world.tokens[analyst]))
            stack.callback(session.end)
            return session

        yield opened


@pytest.fixture(params=KINDS)
def session(request: pytest.FixtureRequest, opener: Opener) -> Any:
    """Ana's session, of each kind."""
    return opener(request.param)


@pytest.fixture
def world(start_served: Starter) -> World:  # noqa: F811
    """A server with a time quantum of nothing."""
    return start_served()
