"""Every endpoint and every method of the service with every role: allowed or refused, as written out here by hand."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi.routing import APIRoute

from hubbub.accounting.calls import Remark, RemarkCall
from hubbub.curator.schedule_list import Schedule, Schedules
from hubbub.errors import AccessError
from hubbub.server.accounts import Principal
from hubbub.server.administration_service import AdministrationService
from hubbub.server.api import administration, attacks, publications, queries, reviews, sandbox, schedules, streams
from hubbub.server.attack_service import AttackService, CrowdService
from hubbub.server.audit_service import AuditService
from hubbub.server.catalog_service import CatalogService
from hubbub.server.comment_service import CommentService
from hubbub.server.news_service import NewsService
from hubbub.server.publication_service import PublicationService
from hubbub.server.query_service import QueryService
from hubbub.server.review_service import ReviewService
from hubbub.server.roles import allowed, roles_of
from hubbub.server.sandbox_service import SandboxService
from hubbub.server.saved_service import SavedService
from hubbub.server.schedule_service import ScheduleService
from hubbub.server.stream_service import StreamService

BATCH = {"queries": ["SELECT COUNT(*) AS n FROM health"], "epsilon": "0.001"}
COUNT = {"sql": "SELECT COUNT(*) AS n FROM health", "epsilon": "0.001"}
MORE = {"dataset": "health", "epsilon": 1, "reason": "more"}
NAMES = {"owner": "owner", "analyst": "ana", "auditor": "auditor", "steward": "steward"}

#: Which roles may call which method, written out by hand: never computed from the decorators under test.
MATRIX: dict[str, set[str]] = {
    "catalog.me": {"owner", "analyst", "auditor", "steward"},
    "catalog.meaning": {"owner", "analyst", "auditor"},
    "catalog.datasets": {"owner", "analyst", "auditor"},
    "catalog.tables": {"owner", "analyst", "auditor"},
    "catalog.describe": {"owner", "analyst", "auditor"},
    "catalog.budget": {"owner", "analyst", "auditor"},
    "catalog.spending": {"owner", "auditor"},
    "catalog.releases": {"owner", "analyst", "auditor"},
    "catalog.release": {"owner", "analyst", "auditor"},
    "queries.estimate": {"analyst"},
    "queries.explain": {"analyst"},
    "queries.ask": {"analyst"},
    "queries.begin": {"analyst"},
    "queries.answer": {"analyst"},
    "queries.stop": {"analyst"},
    "queries.columns": {"analyst"},
    "queries.enqueue": {"analyst"},
    "queries.job": {"analyst"},
    "queries.wait": {"analyst"},
    "queries.progress": {"analyst"},
    "queries.cancel": {"analyst"},
    "administration.config": {"owner"},
    "administration.check": {"owner"},
    "administration.apply": {"owner"},
    "administration.analysts": {"owner", "auditor"},
    "administration.add_analyst": {"owner"},
    "administration.remove_analyst": {"owner"},
    "administration.removed_analysts": {"owner"},
    "administration.restore_analyst": {"owner"},
    "administration.groups": {"owner", "auditor"},
    "administration.set_group": {"owner"},
    "administration.remove_group": {"owner"},
    "administration.tokens": {"owner"},
    "administration.issue": {"owner"},
    "administration.revoke": {"owner"},
    "administration.request": {"analyst"},
    "administration.requests": {"owner", "analyst", "auditor"},
    "administration.grant": {"owner"},
    "administration.effect": {"owner", "auditor"},
    "administration.refuse": {"owner"},
    "audit.history": {"owner", "auditor"},
    "audit.refused": {"owner", "auditor"},
    "audit.self_audit": {"owner", "auditor"},
    "audit.unusual": {"owner", "auditor"},
    "audit.verify": {"owner", "auditor"},
    "audit.review": {"owner"},
    "audit.figures": {"owner", "auditor"},
    "streams.entries": {"owner", "analyst", "auditor"},
    "streams.read": {"owner", "analyst", "auditor"},
    "streams.begin": {"analyst"},
    "streams.answer": {"analyst"},
    "streams.feed": {"owner", "feeder"},
    "streams.end": {"owner", "analyst"},
    "publications.publish": {"owner"},
    "publications.withdraw": {"owner"},
    "publications.waiting": {"owner", "steward", "auditor"},
    "publications.show": {"owner", "steward"},
    "publications.decide": {"owner", "steward"},
    "publications.actions": {"owner", "auditor"},
    "reviews.entries": {"owner", "steward", "auditor"},
    "reviews.show": {"owner", "steward"},
    "reviews.decide": {"owner", "steward"},
    "sandbox.datasets": {"analyst"},
    "sandbox.describe": {"analyst"},
    "sandbox.estimate": {"analyst"},
    "sandbox.columns": {"analyst"},
    "sandbox.ask": {"analyst"},
    "sandbox.begin": {"analyst"},
    "schedules.entries": {"owner", "analyst", "auditor"},
    "schedules.show": {"owner", "analyst", "auditor"},
    "schedules.add": {"owner", "analyst"},
    "schedules.remove": {"owner", "analyst"},
    **{f"comments.{name}": {"owner", "analyst", "auditor"} for name in ("list", "add", "remove")},
    **{f"saved.{name}": {"analyst"} for name in ("questions", "dashboards", "save", "question", "remove")},
    **{f"saved.{name}": {"analyst"} for name in ("dashboard", "share", "remove_dashboard")},
    "news.changes": {"analyst"},
    "attacks.catalog": {"owner", "analyst", "auditor"},
    "attacks.begin": {"owner", "analyst", "auditor"},
    "attacks.runs": {"owner", "analyst", "auditor"},
    "attacks.run": {"owner", "analyst", "auditor"},
    "attacks.cancel": {"owner", "analyst", "auditor"},
    "crowd.catalog": {"owner", "analyst", "auditor"},
    "crowd.begin": {"owner", "analyst", "auditor"},
    "crowd.runs": {"owner", "analyst", "auditor"},
    "crowd.run": {"owner", "analyst", "auditor"},
    "crowd.cancel": {"owner", "analyst", "auditor"},
}
PARTS: dict[str, type] = {
    "catalog": CatalogService,
    "queries": QueryService,
    "administration": AdministrationService,
    "audit": AuditService,
    "streams": StreamService,
    "attacks": AttackService,
    "crowd": CrowdService,
    "publications": PublicationService,
    "schedules": ScheduleService,
    "reviews": ReviewService,
    "sandbox": SandboxService,
    "comments": CommentService,
    "saved": SavedService,
    "news": NewsService,
}


@dataclass(frozen=True)
class Cell:
    """A request that succeeds for the roles of `guard`, a method of the service; `make` prepares what it needs."""

    guard: str
    method: str
    path: str
    make: Callable[[Any], tuple[str, Any, dict[str, str]]]
    status: int = 200


def plain(path: str, body: Any = None) -> Callable[[Any], tuple[str, Any, dict[str, str]]]:
    return lambda _: (path, body, {})


def a_query(world: Any) -> tuple[str, Any, dict[str, str]]:
    world.keys += 1
    return "/query", COUNT, {"Idempotency-Key": f"cell-{world.keys}"}


def a_batch(world: Any) -> tuple[str, Any, dict[str, str]]:
    _, _, headers = a_query(world)
    return "/batch", BATCH, headers


def a_job(world: Any) -> tuple[str, Any, dict[str, str]]:
    path, body, headers = a_query(world)
    made = world.client("ana").post(f"/api/v1{path}", json=body, headers=headers | {"Prefer": "respond-async"})
    return f"/jobs/{made.json()['id']}", None, {}


def a_release(world: Any) -> tuple[str, Any, dict[str, str]]:
    sequence = world.ask(epsilon="0.001").json()["receipt"]["ledger"][0]["sequence"]
    return f"/releases/{sequence}", None, {}


def a_request(verb: str) -> Callable[[Any], tuple[str, Any, dict[str, str]]]:
    def make(world: Any) -> tuple[str, Any, dict[str, str]]:
        asked = {"dataset": "health", "epsilon": "0.001", "reason": "more"}
        made = world.client("ana").post("/api/v1/requests", json=asked)
        return f"/requests/{made.json()['id']}/{verb}", {"note": "so"}, {}

    return make


def an_open_request(world: Any) -> tuple[str, Any, dict[str, str]]:
    path, _, headers = a_request("effect")(world)
    return path, None, headers


def a_failure(world: Any) -> tuple[str, Any, dict[str, str]]:
    ledger = world.service.current.curator.ledger
    charge = world.ask(epsilon="0.001").json()["receipt"]["ledger"][0]["sequence"]
    ledger.remark(RemarkCall("failure", [Remark("ana", "health", charge)]))
    return "/ledger/review", {"analyst": "ana", "dataset": "health"}, {}


def an_analyst(world: Any) -> tuple[str, Any, dict[str, str]]:
    world.client("owner").post("/api/v1/analysts", json={"name": "tim", "caps": {}})
    return "/analysts/tim", None, {}


def a_group(world: Any) -> tuple[str, Any, dict[str, str]]:
    terms = {"members": ["eve"], "caps": {"health": {"epsilon": 2}}}
    assert world.client("owner").put("/api/v1/groups/night", json=terms).status_code == 200
    return "/groups/night", None, {}


def a_token(world: Any) -> tuple[str, Any, dict[str, str]]:
    made = world.client("owner").post("/api/v1/tokens", json={"name": "zoe", "role": "auditor"}).json()
    return f"/tokens/{made['id']}", None, {}


def the_config(world: Any) -> tuple[str, Any, dict[str, str]]:
    found = world.client("owner").get("/api/v1/config").json()
    return "/config", {"text": found["text"] + "# once more\n"}, {"If-Match": f'"{found["hash"]}"'}


def a_charged_stream(world: Any) -> tuple[str, Any, dict[str, str]]:
    world.keys += 1
    call = f"CALL stream(table => 'health', name => 's{world.keys}', kind => 'density', universe => [0, 99])"
    sequence = world.ask(sql=call, epsilon="0.001").json()["receipt"]["ledger"][0]["sequence"]
    return "/streams", {"release": sequence}, {}


def a_stream(rest: str, body: Any = None) -> Callable[[Any], tuple[str, Any, dict[str, str]]]:
    def make(world: Any) -> tuple[str, Any, dict[str, str]]:
        path, begin, _ = a_charged_stream(world)
        made = world.client("ana").post(f"/api/v1{path}", json=begin)
        return f"/streams/{made.json()['name']}{rest}", body, {}

    return make


STUDY = {"attack": "exhaustive", "epsilons": ["1"]}


def a_study(world: Any) -> tuple[str, Any, dict[str, str]]:
    for run in world.service.lab._runs.values():
        world.service.lab.cancel(run)
    return "/attacks/runs", STUDY, {}


def a_run(world: Any) -> tuple[str, Any, dict[str, str]]:
    """A study of whoever asks: nobody sees another's."""
    path, body, _ = a_study(world)
    made = world.client(world.asking).post(f"/api/v1{path}", json=body)
    return f"{path}/{made.json().get('id', '0' * 32)}", None, {}


def a_publication(world: Any) -> tuple[str, Any, dict[str, str]]:
    number = world.ask(epsilon="0.001").json()["receipt"]["ledger"][0]["sequence"]
    return "/publications", {"release": number, "title": "Visits"}, {}


def a_public_page(world: Any) -> tuple[str, Any, dict[str, str]]:
    path, body, _ = a_publication(world)
    done = world.client("owner").post(f"/api/v1{path}", json=body)
    return f"{path}/{done.json()['page']}", None, {}


def a_schedule(world: Any) -> tuple[str, Any, dict[str, str]]:
    world.keys += 1
    name = f"q{world.keys}"
    Schedules(world.folder / "hubbub-ledger").add(Schedule(name, "ana", "health", "SELECT 1", "1", "2026-01"))
    return f"/schedules/ana/{name}", None, {}


MONTHLY = {"name": "monthly", "sql": "SELECT COUNT(*) FROM health", "every": "month", "epsilon": "1", "analyst": "ana"}

ASKED = {"sql": "SELECT COUNT(*) FROM health", "epsilon": "1"}

CELLS: dict[str, Cell] = {
    "me": Cell("catalog.me", "GET", "/me", plain("/me")),
    "datasets": Cell("catalog.datasets", "GET", "/datasets", plain("/datasets")),
    "describe": Cell("catalog.describe", "GET", "/datasets/{name}", plain("/datasets/health")),
    "estimate": Cell("queries.estimate", "POST", "/estimate", plain("/estimate", COUNT)),
    "explain": Cell("queries.explain", "POST", "/explain", plain("/explain", COUNT)),
    "meaning": Cell("catalog.meaning", "GET", "/explain", plain("/explain?epsilon=0.1")),
    "query": Cell("queries.ask", "POST", "/query", a_query),
    "batch": Cell("queries.ask", "POST", "/batch", a_batch),
    "batch_estimate": Cell("queries.estimate", "POST", "/batch/estimate", plain("/batch/estimate", BATCH)),
    "job": Cell("queries.job", "GET", "/jobs/{number}", a_job),
    "cancel": Cell("queries.cancel", "DELETE", "/jobs/{number}", a_job),
    "releases": Cell("catalog.releases", "GET", "/releases", plain("/releases")),
    "release": Cell("catalog.release", "GET", "/releases/{number}", a_release),
    "budget": Cell("catalog.budget", "GET", "/budget", plain("/budget")),
    "request": Cell(
        "administration.request",
        "POST",
        "/requests",
        plain("/requests", {"dataset": "health", "epsilon": 1, "reason": "more"}),
        201,
    ),
    "requests": Cell("administration.requests", "GET", "/requests", plain("/requests")),
    "effect": Cell("administration.effect", "GET", "/requests/{number}/effect", an_open_request),
    "grant": Cell("administration.grant", "POST", "/requests/{number}/grant", a_request("grant")),
    "refuse": Cell("administration.refuse", "POST", "/requests/{number}/refuse", a_request("refuse")),
    "analysts": Cell("administration.analysts", "GET", "/analysts", plain("/analysts")),
    "add_analyst": Cell("administration.add_analyst", "POST", "/analysts", plain("/analysts", {"name": "tom"}), 201),
    "remove_analyst": Cell("administration.remove_analyst", "DELETE", "/analysts/{name}", an_analyst, 204),
    "groups": Cell("administration.groups", "GET", "/groups", plain("/groups")),
    "group": Cell("administration.groups", "GET", "/groups/{name}", plain("/groups/guests")),
    "set_group": Cell(
        "administration.set_group",
        "PUT",
        "/groups/{name}",
        plain("/groups/day", {"members": ["eve"], "caps": {"health": {"epsilon": 2}}}),
    ),
    "remove_group": Cell("administration.remove_group", "DELETE", "/groups/{name}", a_group, 204),
    "tokens": Cell("administration.tokens", "GET", "/tokens", plain("/tokens")),
    "issue": Cell("administration.issue", "POST", "/tokens", plain("/tokens", {"name": "zoe", "role": "auditor"}), 201),
    "revoke": Cell("administration.revoke", "DELETE", "/tokens/{number}", a_token, 204),
    "config": Cell("administration.config", "GET", "/config", plain("/config")),
    "check": Cell("administration.check", "POST", "/config/check", plain("/config/check", {"text": "version: 1\n"})),
    "apply": Cell("administration.apply", "PUT", "/config", the_config),
    "history": Cell("audit.history", "GET", "/ledger", plain("/ledger")),
    "verify": Cell("audit.verify", "POST", "/ledger/verify", plain("/ledger/verify")),
    "review": Cell("audit.review", "POST", "/ledger/review", a_failure),
    "streams": Cell("streams.entries", "GET", "/streams", plain("/streams")),
    "begin_stream": Cell("streams.begin", "POST", "/streams", a_charged_stream, 201),
    "stream": Cell("streams.read", "GET", "/streams/{name}", a_stream("")),
    "feed_stream": Cell("streams.feed", "POST", "/streams/{name}/arrivals", a_stream("/arrivals", {"lines": ["7"]})),
    "answer_stream": Cell("streams.answer", "POST", "/streams/{name}/answer", a_stream("/answer")),
    "end_stream": Cell("streams.end", "DELETE", "/streams/{name}", a_stream(""), 204),
    "publish": Cell("publications.publish", "POST", "/publications", a_publication, 201),
    "publications": Cell("publications.actions", "GET", "/publications", plain("/publications")),
    "waiting_publications": Cell(
        "publications.waiting", "GET", "/publications/waiting", plain("/publications/waiting")
    ),
    # nothing is reviewed here: whoever may decide is told that nothing waits
    "decide_publication": Cell(
        "publications.decide",
        "POST",
        "/publications/waiting/{number}",
        plain("/publications/waiting/1", {"approve": True, "text": "0" * 64}),
        404,
    ),
    "withdraw": Cell("publications.withdraw", "DELETE", "/publications/{page}", a_public_page),
    "answer_reviews": Cell("reviews.entries", "GET", "/reviews", plain("/reviews")),
    # nothing is reviewed here: whoever may decide is told so
    "answer_review": Cell("reviews.show", "GET", "/reviews/{number}", plain("/reviews/1"), 404),
    "decide": Cell("reviews.decide", "POST", "/reviews/{number}", plain("/reviews/1", {"approve": True}), 404),
    "sandbox_datasets": Cell("sandbox.datasets", "GET", "/sandbox/datasets", plain("/sandbox/datasets")),
    "sandbox_describe": Cell("sandbox.describe", "GET", "/sandbox/datasets/{name}", plain("/sandbox/datasets/health")),
    "sandbox_estimate": Cell("sandbox.estimate", "POST", "/sandbox/estimate", plain("/sandbox/estimate", ASKED)),
    "sandbox_query": Cell("sandbox.ask", "POST", "/sandbox/query", plain("/sandbox/query", ASKED)),
    "schedules": Cell("schedules.entries", "GET", "/schedules", plain("/schedules")),
    # the demo has no blocks: whoever may schedule a query is told so
    "add_schedule": Cell("schedules.add", "POST", "/schedules", plain("/schedules", MONTHLY), 422),
    "schedule": Cell("schedules.show", "GET", "/schedules/{analyst}/{name}", a_schedule),
    "remove_schedule": Cell("schedules.remove", "DELETE", "/schedules/{analyst}/{name}", a_schedule, 204),
    "attacks": Cell("attacks.catalog", "GET", "/attacks", plain("/attacks")),
    "attack_runs": Cell("attacks.runs", "GET", "/attacks/runs", plain("/attacks/runs")),
    "begin_attack": Cell("attacks.begin", "POST", "/attacks/runs", a_study, 202),
    "attack_run": Cell("attacks.run", "GET", "/attacks/runs/{number}", a_run),
    "cancel_attack": Cell("attacks.cancel", "DELETE", "/attacks/runs/{number}", a_run),
}


ROUTED = (queries, administration, streams, attacks, publications, schedules, reviews, sandbox)


def routes() -> dict[str, tuple[str, str]]:
    found = [route for part in ROUTED for route in part.router.routes]
    assert all(isinstance(route, APIRoute) and len(route.methods or ()) == 1 for route in found)
    mine = [route for route in found if isinstance(route, APIRoute)]
    return {r.operation_id or "": (min(r.methods or {""}), r.path.removeprefix("/api/v1")) for r in mine}


def test_every_route_has_its_cells() -> None:
    assert routes() == {name: (cell.method, cell.path) for name, cell in CELLS.items()}


@pytest.mark.parametrize("role", [*NAMES, "nobody"])
@pytest.mark.parametrize("operation", CELLS)
def test_an_endpoint_is_open_to_its_roles_and_to_no_other(shared: Any, operation: str, role: str) -> None:
    cell = CELLS[operation]
    shared.asking = NAMES.get(role, "ana")
    path, body, headers = cell.make(shared)
    client = shared.client(NAMES.get(role))
    answer = client.request(cell.method, f"/api/v1{path}", json=body, headers=headers)
    if role == "nobody":
        assert (answer.status_code, answer.json()["code"]) == (401, "HB700")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    elif role in MATRIX[cell.guard]:
        assert answer.status_code == cell.status, answer.text
    else:
        assert (answer.status_code, answer.json()["code"]) == (403, "HB710")


def methods() -> dict[str, Callable[..., Any]]:
    """All public methods of the service's parts that take a principal."""
    return {
        f"{part}.{name}": method
        for part, kind in PARTS.items()
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if "principal" in inspect.signature(method).parameters and not name.startswith("_")
    }


def test_the_roles_at_the_methods_are_those_written_out_here() -> None:
    assert {name: set(roles_of(method)) for name, method in methods().items()} == MATRIX


def test_the_parts_tested_here_are_those_of_the_service(shared: Any) -> None:
    parts = {name: type(part) for name, part in vars(shared.service).items() if type(part).__name__.endswith("Service")}
    assert parts == PARTS


def test_an_analyst_reads_neither_the_ledger_nor_who_else_there_is() -> None:
    hidden = ("audit.history", "audit.verify", "audit.figures", "administration.analysts", "administration.groups")
    for name in (*hidden, "administration.config", "administration.tokens"):
        with pytest.raises(AccessError, match="HB710"):
            methods()[name](None, Principal("ana", "analyst", None, 0))


def test_every_method_that_takes_a_principal_refuses_an_unknown_role() -> None:
    nobody = Principal("x", "stranger", None, 0)  # type: ignore[arg-type]
    for method in methods().values():
        with pytest.raises(AccessError, match="HB710"):
            method(None, nobody)


def test_a_method_without_roles_can_be_called_by_nobody() -> None:
    class Made:
        @allowed()
        def new(self, principal: Principal) -> None:
            """Planted: somebody forgot the roles."""

    assert roles_of(Made.new) == frozenset()
    with pytest.raises(AccessError):
        Made().new(Principal("owner", "owner", None, 0))


def test_an_undecorated_method_shows_up_without_roles() -> None:
    assert roles_of(lambda _: None) == frozenset()
