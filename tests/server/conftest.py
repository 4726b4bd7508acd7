"""A service over the demo's data: in this process (`app`), or behind a real port on this machine (`served`)."""

import asyncio
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from hubbub.demo import HERE
from hubbub.server.app import create_app, uvicorn_config
from hubbub.server.service import Service
from hubbub.server.settings import Settings

YAML = """\
# The demo's data, with more budget and more people.
version: 1
datasets:
  health:
    source: health.csv
    unit: {column: person, groups: 5, rows: 5}
    columns:
      person:      {type: integer}
      year:        {values: [1, 2, 3, 4, 5]}
      site:        {values: [1, 2, 3, 4, 5, 6]}
      coinsurance: {values: [0, 25, 50, 95, 100]}
      female:      {values: [0, 1]}
      age:         {type: integer, bounds: [0, 65]}
      visits:      {type: integer, bounds: [0, 80]}
      spending:    {bounds: [0, 5000], step: 0.01}
      health:      {values: [excellent, good, fair, poor]}
    budget: {epsilon: 30, delta: 1e-7, per_query: 5}
  wards:   # ben's alone
    source: wards.csv
    unit: row
    columns: {ward: {values: [a, b]}}
    budget: {epsilon: 2}
  plans: {source: plans.csv, public: true}
analysts:
  ana: {health: {epsilon: 10}}
  ben: {health: {epsilon: 1}, wards: {epsilon: 1}}
  eve: {}
groups:
  guests: {members: [ben, eve], health: {epsilon: 4}}
"""

COUNT = "SELECT COUNT(*) AS n FROM health"


@dataclass
class World:
    """A service with a folder of its own and a token for everybody: owner, auditor, ana, ben and eve."""

    folder: Path
    service: Service
    tokens: dict[str, str]
    url: str
    make: Callable[..., httpx.Client]
    stack: ExitStack = field(default_factory=ExitStack)
    keys: int = 0

    def client(self, who: str | None = "ana", **options: Any) -> httpx.Client:
        """Give a client that asks as somebody (None: without a token)."""
        headers = {} if who is None else {"Authorization": f"Bearer {self.tokens[who]}"}
        return self.stack.enter_context(self.make(headers=headers, **options))

    def ask(self, who: str = "ana", sql: str = COUNT, *, header: str | None = None, **body: Any) -> httpx.Response:
        """Send a query; a new Idempotency-Key unless one is given."""
        self.keys += 1
        headers = {"Idempotency-Key": header or f"test-{self.keys}"}
        body = {"sql": sql, "epsilon": "0.1", **body}
        return self.client(who).post("/api/v1/query", json=body, headers=headers)

    def spent(self, analyst: str = "ana") -> dict[str, str]:
        """Give what an analyst has spent, by data set."""
        found = self.client("owner").get("/api/v1/budget", params={"analyst": analyst}).json()["budgets"]
        return {b["dataset"]: c["spent"] for b in found for c in b["caps"] if c["scope"] == "analyst"}


def lay_out(folder: Path) -> Path:
    """Write the data and its hubbub.yaml."""
    shutil.copyfile(HERE / "health.csv", folder / "health.csv")
    (folder / "wards.csv").write_text("ward\n" + "a\nb\n" * 50)
    (folder / "plans.csv").write_text("coinsurance,word\n0,free\n25,some\n50,half\n95,most\n100,all\n")
    path = folder / "hubbub.yaml"
    path.write_text(YAML)
    return path


def opened(folder: Path, **changes: Any) -> tuple[Service, dict[str, str]]:
    """Open a service and give everybody a token."""
    settings = Settings(secret=b"s" * 32, port=0, quantum=0.0, workers=2, queue=8, per_minute=1_000_000)
    service = Service(folder / "hubbub.yaml", replace(settings, **changes))
    roles = {"owner": "owner", "auditor": "auditor", "ana": "analyst", "ben": "analyst", "eve": "analyst"}
    return service, {name: service.accounts.issue(name, role, 1).text for name, role in roles.items()}  # type: ignore[arg-type]


Starter = Callable[..., World]


class _Loop:
    """An event loop in a thread of its own, as long as a `with` block lasts."""

    def __enter__(self) -> asyncio.AbstractEventLoop:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        return self.loop

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class _InProcess(httpx.BaseTransport):
    """Hands requests to an application in this process, from any thread."""

    def __init__(self, app: FastAPI, loop: asyncio.AbstractEventLoop, client: tuple[str, int]) -> None:
        self._transport = httpx.ASGITransport(app, client=client)
        self._loop = loop

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        async def send() -> httpx.Response:
            response = await self._transport.handle_async_request(request)
            content = b"".join([part async for part in response.aiter_raw()])
            return httpx.Response(response.status_code, headers=response.headers, content=content)

        return asyncio.run_coroutine_threadsafe(send(), self._loop).result()


@pytest.fixture
def start_app(tmp_path: Path) -> Iterator[Starter]:
    """Start services in this process; options are settings. All are stopped at the end."""
    with ExitStack() as stack:

        def start(folder: Path = tmp_path, **changes: Any) -> World:
            if not (folder / "hubbub.yaml").exists():
                lay_out(folder)
            service, tokens = opened(folder, **changes)
            stack.callback(service.close)
            made, loop = create_app(service), stack.enter_context(_Loop())

            def make(client: tuple[str, int] = ("203.0.113.9", 50000), **options: Any) -> httpx.Client:
                return httpx.Client(transport=_InProcess(made, loop, client), base_url="http://testserver", **options)

            world = World(folder, service, tokens, "http://testserver", make)
            stack.enter_context(world.stack)
            return world

        yield start


@pytest.fixture
def app(start_app: Starter) -> World:
    """A service in this process, without a time quantum."""
    return start_app()


@pytest.fixture
def start_served(tmp_path: Path) -> Iterator[Starter]:
    """Start services behind real ports; options are settings. All are stopped at the end."""
    with ExitStack() as stack:

        def start(folder: Path = tmp_path, **changes: Any) -> World:
            if not (folder / "hubbub.yaml").exists():
                lay_out(folder)
            service, tokens = opened(folder, **changes)
            url = stack.enter_context(_running(service))
            world = World(
                folder, service, tokens, url, lambda **options: httpx.Client(base_url=url, timeout=60, **options)
            )
            stack.enter_context(world.stack)
            return world

        yield start


@pytest.fixture
def served(start_served: Starter) -> World:
    """A service behind a real port, with its time quantum."""
    return start_served(quantum=0.1)


class _running:  # noqa: N801 - used like a function
    """Runs a service behind a free port for as long as a `with` block lasts."""

    def __init__(self, service: Service) -> None:
        self.server = uvicorn.Server(uvicorn_config(create_app(service), service))
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.server.run, args=[[self.socket]])

    def __enter__(self) -> str:
        self.thread.start()
        while not self.server.started and self.thread.is_alive():
            self.thread.join(0.01)
        return f"http://127.0.0.1:{self.socket.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self.thread.join()
        self.socket.close()
