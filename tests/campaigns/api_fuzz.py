"""Send what the OpenAPI document allows, and what it does not, to every operation as every role: no 5xx, no surprise.

Schemathesis makes the inputs, half of them by the document's rules and half against them; a third of those by the rules
get names, queries and numbers that exist, so that they come further in. Each input is sent twice: as somebody who may
do it, and as somebody else or nobody. Every answer is held against the document: status, media type, headers, schema.
At the end the ledger verifies, and no cap is passed. Two processes share the work, each over a service of its own.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m tests.campaigns.api_fuzz
"""

import asyncio
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.result import Ok
from schemathesis.core.transport import Response
from schemathesis.generation.case import Case
from schemathesis.generation.modes import GenerationMode
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.campaigns.frame import Report, run
from tests.server.test_roles import CELLS, MATRIX

from hubbub.demo import lay_out
from hubbub.server.app import create_app
from hubbub.server.limits import RateLimit
from hubbub.server.service import Service
from hubbub.server.settings import Settings

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
PROCESSES = 2
AnyCase = Case[Any]
#: Where errors are planted, to see that they are found.
PLANTED = {"POST /api/v1/estimate", "GET /api/v1/datasets"}
#: What exists, for the fields of bodies.
_KNOWN: dict[str, tuple[Any, ...]] = {
    "sql": (
        "SELECT COUNT(*) AS n FROM health",
        "SELECT site, AVG(age) AS a FROM health GROUP BY site",
        "EXPLAIN SELECT 1",
        "SELECT COUNT(DISTINCT person) AS n FROM health WHERE visits > $1",
        "SELECT * FROM health",
        "SELECT MEDIAN(age) AS m, SUM(visits) AS v FROM health WHERE year = 1",
        "SELECT (((((1)))))",
    ),
    "epsilon": ("0.01", 0.02, "1/50"),
    "dataset": ("health",),
    "caps": tuple({"health": {"epsilon": number}} for number in range(1, 9)),
    "members": (["ben"], ["ana", "ben"], ["nobody"]),
    "name": ("tom", "zoe"),
    "attack": ("differencing", "exhaustive", "nothing"),
    "table": ("made up", "upload", "health"),
    "settings": ({}, {"trials": 20}, {"nothing": 1}),
    "csv": ("a,b\n1,2\n", "a\n", "\0", None),
}


@dataclass
class World:
    """A service with tokens, and an event loop to call it on."""

    folder: Path
    chance: random.Random
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    def __post_init__(self) -> None:
        lay_out(self.folder)
        path = self.folder / "hubbub.yaml"
        text = path.read_text().replace("budget: {epsilon: 3,", "budget: {epsilon: 1000,")
        path.write_text(text.replace("you: {health: {epsilon: 3}}", "ana: {health: {epsilon: 900}}\n  ben: {}"))
        self.service = Service(path, Settings(secret=b"s" * 32, quantum=0.0, workers=2, queue=64, per_minute=1_000_000))
        self.service.attempts_limit = RateLimit(1_000_000)  # guessing is what we do here
        issue = self.service.accounts.issue
        self.tokens = {
            "owner": issue("olga", "owner", 1).text,
            "auditor": issue("udo", "auditor", 1).text,
            "analyst": issue("ana", "analyst", 1).text,
            "other": issue("ben", "analyst", 1).text,
            "steward": issue("stella", "steward", 1).text,
            "feeder": issue("gate", "feeder", 1, ["ana/seen"]).text,
        }
        self.app = create_app(self.service)

    def send(self, case: AnyCase, who: str | None) -> Response:
        """Send a case as somebody, without a network."""
        terms = case.as_transport_kwargs(base_url="http://testserver")
        terms["headers"].pop("Authorization", None)
        if who is not None:
            terms["headers"]["Authorization"] = f"Bearer {self.tokens[who]}"
        request = requests.Request(**{key: value for key, value in terms.items() if key in _TERMS}).prepare()
        begun = time.perf_counter()
        status, sent, body = self.loop.run_until_complete(self._call(request))
        return Response(status, sent, body, request, time.perf_counter() - begun, verify=False)

    async def _call(self, request: requests.PreparedRequest) -> tuple[int, dict[str, list[str]], bytes]:
        parts = urlsplit(request.url or "")
        body = request.body.encode() if isinstance(request.body, str) else request.body or b""
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": "http",
            "path": unquote(parts.path),
            "raw_path": parts.path.encode(),
            "root_path": "",
            "query_string": parts.query.encode(),
            "client": ("203.0.113.9", 1),
            "server": ("testserver", 80),
            "headers": [(_bytes(k).lower(), _bytes(v)) for k, v in request.headers.items()],
        }
        messages = [{"type": "http.request", "body": body, "more_body": False}]
        status, headers, received = 0, {}, b""

        async def receive() -> Any:
            if not messages:
                await asyncio.sleep(3600)
            return messages.pop()

        async def send(message: Any) -> None:
            nonlocal status, headers, received
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = {k.decode(): [v.decode("latin-1")] for k, v in message["headers"]}
            else:
                received += message.get("body", b"")

        await self.app(scope, receive, send)
        return status, headers, received

    def close(self) -> bool:
        """Stop, and say whether the ledger verifies and no cap is passed."""
        principal = self.service.accounts.identify(self.tokens["owner"])
        sound = bool(self.service.audit.verify(principal)["sound"])
        held = all(
            (cap.spent or 0) <= cap.epsilon for view in self.service.catalog.budget(principal) for cap in view.caps
        )
        self.service.close()
        self.loop.close()
        return sound and held

    def deepen(self, case: AnyCase) -> None:
        """Put in what exists, so that a case comes further in."""
        for name in case.path_parameters or ():
            case.path_parameters[name] = "health" if name == "name" else self._number(case.path)
            if name == "name" and "datasets" not in case.path:
                case.path_parameters[name] = self.chance.choice(("tom", "guests"))
        body = case.body
        if isinstance(body, dict):
            for name in body.keys() & _KNOWN.keys():
                body[name] = self.chance.choice(_KNOWN[name])
            if "sql" in body:
                body.pop("within", None)
            if "text" in body:
                draft = (self.folder / "hubbub.yaml").read_text()
                body["text"] = draft + self.chance.choice(("# more\n", "more: 1\n", "\0", "\ttab"))
                case.headers["If-Match"] = self.service.current.config.hash

    def _number(self, path: str) -> str | int:
        if path.startswith("/api/v1/jobs"):
            return self.chance.choice([*self.service.pool._jobs, "0" * 32])
        if path.startswith("/api/v1/attacks"):
            return self.chance.choice([*self.service.lab._runs, "0" * 32])
        if path.startswith("/api/v1/tokens"):
            return self.chance.choice([t.id for t in self.service.state.tokens.list("zoe")] or ["0" * 12])
        return self.chance.randint(1, 60)


_TERMS = {"method", "url", "headers", "data", "json", "params", "cookies", "files"}


Operation = APIOperation[Any, Any, Any, Any]


@dataclass
class Found:
    """What came back."""

    statuses: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    operations: int = 0
    sound: bool = False


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("latin-1", "replace")


def fuzz(number: int, inputs: int, *, planted: bool) -> Found:
    """Send so many inputs, each as two principals; give the statuses and the failures.

    With an error planted, estimates fail as no error of ours does, and the list of datasets holds a number.
    """
    warnings.simplefilter("ignore")
    found = Found()
    with tempfile.TemporaryDirectory(prefix="hubbub-fuzz-") as folder:
        world = World(Path(folder), random.Random(number))
        if planted:
            world.service.queries.estimate = _broken  # type: ignore[method-assign,assignment]
            world.service.catalog.datasets = lambda *_: (7,)  # type: ignore[method-assign,assignment]
        schema = schemathesis.openapi.from_dict(world.app.openapi())
        operations = [each.ok() for each in schema.get_all_operations() if isinstance(each, Ok)]
        left = inputs
        for place, operation in enumerate(operations):
            share = left // (len(operations) - place)
            left -= share
            _operation(world, operation, share, number, found)
            print(f"{number}: {operation.label}", file=sys.stderr)
        found.operations = len(operations)
        found.sound = world.close()
    return found


def _broken(*_: object) -> Any:
    raise KeyError("planted")


def _operation(world: World, operation: Operation, share: int, number: int, found: Found) -> None:
    name = operation.definition.raw["operationId"]
    may = sorted(MATRIX[CELLS[name].guard])
    others = [*sorted({"owner", "auditor", "analyst"} - set(may)), "other", None]

    def check(case: AnyCase) -> None:
        if case.meta is not None and case.meta.generation.mode.is_positive and world.chance.random() < 1 / 3:
            world.deepen(case)
        for who in (world.chance.choice(may), world.chance.choice(others)):
            answer = world.send(case, who)
            found.statuses[str(answer.status_code)] += 1
            try:
                case.validate_response(answer, checks=CHECKS)
            except (Failure, FailureGroup) as failure:
                found.failures.append(f"{operation.label} as {who}: {failure}"[:2000])

    for mode, count in ((GenerationMode.POSITIVE, (share + 1) // 2), (GenerationMode.NEGATIVE, share // 2)):
        _draw(operation.as_strategy(generation_mode=mode), count, number, check)


def _draw(strategy: SearchStrategy[AnyCase], count: int, number: int, check: Callable[[AnyCase], None]) -> None:
    """Draw so many cases; where a strategy runs dry, because it has few, they are drawn again."""
    made = 0

    def one(case: AnyCase) -> None:
        nonlocal made
        if made < count:
            made += 1
            check(case)

    while made < count:
        options = settings(
            max_examples=count - made,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        seed(number * 1_000_000 + made)(options(given(case=strategy)(one)))()


def _labels(found: Found) -> set[str]:
    return {failure.partition(" as ")[0] for failure in found.failures}


def fuzzing(report: Report) -> None:
    """Share the work, and hold what came back against the targets."""
    inputs = report.scale(ci=1_000, full=50_000)
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        shares = [inputs // PROCESSES + (place < inputs % PROCESSES) for place in range(PROCESSES)]
        running = [pool.submit(fuzz, number, share, planted=False) for number, share in enumerate(shares, 1)]
        caught = pool.submit(fuzz, 99, 310, planted=True).result()
        found = [each.result() for each in running]
    statuses = sum((each.statuses for each in found), Counter[str]())
    failures = [text for each in found for text in each.failures]
    for failure in failures[:10]:
        report.say(failure)
    report.figure("operations", found[0].operations)
    report.figure("inputs", inputs)
    report.figure("statuses", dict(sorted(statuses.items())))
    report.target("requests", sum(statuses.values()), at_least=2 * inputs)
    report.target("server errors", sum(n for status, n in statuses.items() if status >= "5"), at_most=0)
    report.target("answers that the document does not allow", len(failures), at_most=0)
    report.target("ledgers that verify, with every cap held", sum(each.sound for each in found), at_least=PROCESSES)
    report.target("planted errors that were caught", len(_labels(caught) & PLANTED), at_least=len(PLANTED))
    report.target("answers", statuses["200"] + statuses["201"] + statuses["204"], at_least=inputs // 10)


if __name__ == "__main__":
    run(fuzzing)
