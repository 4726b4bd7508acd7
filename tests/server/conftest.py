"""A service over the demo's data: in this process (`app`), or behind a real port on this machine (`served`).

`desk` opens a real browser on the latter.
"""

import asyncio
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Playwright, expect, sync_playwright
from tests.fixtures.page_visits import Visitor, token

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

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# a machine that does other work too is no reason to fail; nothing here waits longer than it must
expect.set_options(timeout=30_000)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_800_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@dataclass
class World:
    """A service with a folder of its own and a token for everybody: owner, auditor, steward, ana, ben and eve."""

    folder: Path
    service: Service
    tokens: dict[str, str]
    url: str
    make: Callable[..., httpx2.Client]
    app: FastAPI
    stack: ExitStack = field(default_factory=ExitStack)
    keys: int = 0

    def client(self, who: str | None = "ana", **options: Any) -> httpx2.Client:
        """Give a client that asks as somebody (None: without a token)."""
        headers = {} if who is None else {"Authorization": f"Bearer {self.tokens[who]}"}
        return self.stack.enter_context(self.make(headers=headers, **options))

    def ask(self, who: str = "ana", sql: str = COUNT, *, header: str | None = None, **body: Any) -> httpx2.Response:
        """Send a query; a new Idempotency-Key unless one is given."""
        self.keys += 1
        headers = {"Idempotency-Key": header or f"test-{self.keys}"}
        body = {"sql": sql, "epsilon": "0.1", **body}
        return self.client(who).post("/api/v1/query", json=body, headers=headers)

    def spent(self, analyst: str = "ana") -> dict[str, str]:
        """Give what an analyst has spent, by dataset."""
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
    settings = Settings(secret=b"s" * 32, port=0, quantum=0.0, workers=2, queue=32, per_minute=1_000_000)
    service = Service(folder / "hubbub.yaml", replace(settings, **changes))
    roles = {
        "owner": "owner",
        "auditor": "auditor",
        "steward": "steward",
        "ana": "analyst",
        "ben": "analyst",
        "eve": "analyst",
    }
    return service, {name: service.accounts.issue(name, role, 1).text for name, role in roles.items()}  # type: ignore[arg-type]


Starter = Callable[..., World]


class Loop:
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


class InProcess(httpx2.BaseTransport):
    """Hands requests to an application in this process, from any thread."""

    def __init__(self, app: Any, loop: asyncio.AbstractEventLoop, client: tuple[str, int]) -> None:
        self._transport = httpx2.ASGITransport(app, client=client)
        self._loop = loop

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        async def send() -> httpx2.Response:
            response = await self._transport.handle_async_request(request)
            content = b"".join([part async for part in response.aiter_raw()])
            return httpx2.Response(response.status_code, headers=response.headers, content=content)

        return asyncio.run_coroutine_threadsafe(send(), self._loop).result()


@contextmanager
def in_process(folder: Path, *, ledger: str = "", **changes: Any) -> Iterator[World]:
    """Run a service in this process, without a time quantum unless one is given; `ledger` is a part of hubbub.yaml."""
    if not (folder / "hubbub.yaml").exists():
        lay_out(folder)
        with (folder / "hubbub.yaml").open("a") as file:
            file.write(ledger)
    service, tokens = opened(folder, **changes)
    with ExitStack() as stack:
        stack.callback(service.close)
        made, loop = create_app(service), stack.enter_context(Loop())

        def make(client: tuple[str, int] = ("203.0.113.9", 50000), **options: Any) -> httpx2.Client:
            return httpx2.Client(transport=InProcess(made, loop, client), base_url="http://testserver", **options)

        world = World(folder, service, tokens, "http://testserver", make, app=made)
        stack.enter_context(world.stack)
        yield world


@contextmanager
def behind_a_port(folder: Path, **changes: Any) -> Iterator[World]:
    """Run a service behind a free port of this machine."""
    if not (folder / "hubbub.yaml").exists():
        lay_out(folder)
    service, tokens = opened(folder, **changes)
    made = create_app(service)
    with ExitStack() as stack:
        url = stack.enter_context(_running(made, service))

        def make(**options: Any) -> httpx2.Client:
            return httpx2.Client(base_url=url, timeout=60, **options)

        world = World(folder, service, tokens, url, make, app=made)
        stack.enter_context(world.stack)
        yield world


@pytest.fixture
def start_app(tmp_path: Path) -> Iterator[Starter]:
    """Start services in this process; options are settings. All are stopped at the end."""
    with ExitStack() as stack:
        yield lambda folder=tmp_path, **changes: stack.enter_context(in_process(folder, **changes))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One service in this process for the tests of a module: they must not mind what the others did."""
    with in_process(tmp_path_factory.mktemp("shared")) as world:
        yield world


@pytest.fixture
def app(start_app: Starter) -> World:
    """A service in this process, without a time quantum."""
    return start_app()


@pytest.fixture
def start_served(tmp_path: Path) -> Iterator[Starter]:
    """Start services behind real ports; options are settings. All are stopped at the end."""
    with ExitStack() as stack:
        yield lambda folder=tmp_path, **changes: stack.enter_context(behind_a_port(folder, **changes))


@pytest.fixture
def served(start_served: Starter) -> World:
    """A service behind a real port, with its time quantum."""
    return start_served(quantum=0.1)


@contextmanager
def _running(app: FastAPI, service: Service) -> Iterator[str]:
    server = uvicorn.Server(uvicorn_config(app, service))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=[[listening]])
        thread.start()
        while not server.started and thread.is_alive():
            thread.join(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    launched = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(ARGUMENTS))
    yield launched
    launched.close()


@pytest.fixture
def visitor(app: Any) -> Visitor:
    """Browsers without a script: each remembers its cookies, and follows redirects."""

    def make(who: str) -> httpx2.Client:
        client: httpx2.Client = app.client(None, follow_redirects=True)
        page = client.get("/sign-in")
        entered = client.post("/sign-in", data={"csrf": token(page), "token": app.tokens[who], "next": "/"})
        assert entered.status_code == 200
        return client

    return make


class Desk:
    """Somebody's browser, and everything that it complained about."""

    def __init__(self, browser: Browser, world: Any, **options: Any) -> None:
        self.world = world
        self.context: BrowserContext = browser.new_context(base_url=world.url, **options)
        self.context.set_default_timeout(30_000)
        self.complaints: list[str] = []
        self.page = self.tab()

    def tab(self) -> Page:
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._heard)
        return page

    def _heard(self, message: ConsoleMessage) -> None:
        # a page that says no has a status of 4xx, and Chromium notes that; everything else is ours to answer for
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    def sign_in(self, who: str) -> Page:
        self.page.goto("/")
        self.page.get_by_label("Your token").fill(self.world.tokens[who])
        self.page.get_by_role("button", name="Sign in").click()
        expect(self.page.get_by_role("heading", level=1)).to_have_text("Datasets")
        return self.page


@pytest.fixture
def desk(browser: Browser, served: Any) -> Iterator[Callable[..., Desk]]:
    """Open browsers, and fail the test where one of them complained."""
    desks: list[Desk] = []

    def open_one(**options: Any) -> Desk:
        desks.append(Desk(browser, served, **options))
        return desks[-1]

    yield open_one
    complaints = [text for each in desks for text in each.complaints]
    for each in desks:
        each.context.close()
    assert complaints == []
