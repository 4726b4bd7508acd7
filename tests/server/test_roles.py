"""Every endpoint with every role: allowed or refused, as is written out here by hand."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi.routing import APIRoute

from hubbub.accounting.calls import Remark, Remarking
from hubbub.errors import AccessError
from hubbub.server.accounts import Principal
from hubbub.server.api import administration as governing
from hubbub.server.api import attacks, streams
from hubbub.server.api import queries as asking
from hubbub.server.roles import ROLES
from hubbub.server.service import Service

COUNT = {"sql": "SELECT COUNT(*) AS n FROM health", "epsilon": "0.001"}
MORE = {"dataset": "health", "epsilon": 1, "reason": "more"}
NAMES = {"owner": "owner", "analyst": "ana", "auditor": "auditor"}

#: Who may call what, method by method; not taken from the table that is tested.
MATRIX: dict[str, set[str]] = {
    "me": {"owner", "analyst", "auditor"},
    "meaning": {"owner", "analyst", "auditor"},
    "datasets": {"owner", "analyst", "auditor"},
    "describe": {"owner", "analyst", "auditor"},
    "budget": {"owner", "analyst", "auditor"},
    "releases": {"owner", "analyst", "auditor"},
    "release": {"owner", "analyst", "auditor"},
    "requests": {"owner", "analyst", "auditor"},
    "estimate": {"analyst"},
    "explain": {"analyst"},
    "ask": {"analyst"},
    "enqueue": {"analyst"},
    "job": {"analyst"},
    "wait": {"analyst"},
    "progress": {"analyst"},
    "cancel": {"analyst"},
    "request": {"analyst"},
    "streams": {"owner", "analyst", "auditor"},
    "stream": {"owner", "analyst", "auditor"},
    "begin_stream": {"analyst"},
    "answer_stream": {"analyst"},
    "feed_stream": {"owner", "feeder"},
    "end_stream": {"owner", "analyst"},
    "review": {"owner"},
    "attacks": {"owner", "analyst", "auditor"},
    "begin_attack": {"owner", "analyst", "auditor"},
    "attack_runs": {"owner", "analyst", "auditor"},
    "attack_run": {"owner", "analyst", "auditor"},
    "cancel_attack": {"owner", "analyst", "auditor"},
    "history": {"owner", "auditor"},
    "verify": {"owner", "auditor"},
    "figures": {"owner", "auditor"},
    "analysts": {"owner", "auditor"},
    "groups": {"owner", "auditor"},
    "config": {"owner"},
    "add_analyst": {"owner"},
    "remove_analyst": {"owner"},
    "set_group": {"owner"},
    "remove_group": {"owner"},
    "tokens": {"owner"},
    "issue": {"owner"},
    "revoke": {"owner"},
    "check": {"owner"},
    "apply": {"owner"},
    "grant": {"owner"},
    "refuse": {"owner"},
}


@dataclass(frozen=True)
class Cell:
    """A request that succeeds for whoever may make it; `make` does what must be first."""

    method: str
    path: str
    make: Callable[[Any], tuple[str, Any, dict[str, str]]]
    status: int = 200
    guard: str = ""


def plain(path: str, body: Any = None) -> Callable[[Any], tuple[str, Any, dict[str, str]]]:
    return lambda _: (path, body, {})


def a_query(world: Any) -> tuple[str, Any, dict[str, str]]:
    world.keys += 1
    return "/query", COUNT, {"Idempotency-Key": f"cell-{world.keys}"}


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


def a_failure(world: Any) -> tuple[str, Any, dict[str, str]]:
    ledger = world.service.current.curator.ledger
    charge = world.ask(epsilon="0.001").json()["receipt"]["ledger"][0]["sequence"]
    ledger.remark(Remarking("failure", [Remark("ana", "health", charge)]))
    return "/ledger/review", {"analyst": "ana", "dataset": "health"}, {}


def an_analyst(world: Any) -> tuple[str, Any, dict[str, str]]:
    world.client("owner").post("/api/v1/analysts", json={"name": "tom", "caps": {}})
    return "/analysts/tom", None, {}


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
    return f"{path}/{made.json()['id']}", None, {}


CELLS: dict[str, Cell] = {
    "me": Cell("GET", "/me", plain("/me")),
    "datasets": Cell("GET", "/datasets", plain("/datasets")),
    "describe": Cell("GET", "/datasets/{name}", plain("/datasets/health")),
    "estimate": Cell("POST", "/estimate", plain("/estimate", COUNT)),
    "explain": Cell("POST", "/explain", plain("/explain", COUNT)),
    "meaning": Cell("GET", "/explain", plain("/explain?epsilon=0.1")),
    "query": Cell("POST", "/query", a_query, guard="ask"),
    "job": Cell("GET", "/jobs/{number}", a_job),
    "cancel": Cell("DELETE", "/jobs/{number}", a_job),
    "releases": Cell("GET", "/releases", plain("/releases")),
    "release": Cell("GET", "/releases/{number}", a_release),
    "budget": Cell("GET", "/budget", plain("/budget")),
    "request": Cell(
        "POST", "/requests", plain("/requests", {"dataset": "health", "epsilon": 1, "reason": "more"}), 201
    ),
    "requests": Cell("GET", "/requests", plain("/requests")),
    "grant": Cell("POST", "/requests/{number}/grant", a_request("grant")),
    "refuse": Cell("POST", "/requests/{number}/refuse", a_request("refuse")),
    "analysts": Cell("GET", "/analysts", plain("/analysts")),
    "add_analyst": Cell("POST", "/analysts", plain("/analysts", {"name": "tom"}), 201),
    "remove_analyst": Cell("DELETE", "/analysts/{name}", an_analyst, 204),
    "groups": Cell("GET", "/groups", plain("/groups")),
    "group": Cell("GET", "/groups/{name}", plain("/groups/guests"), guard="groups"),
    "set_group": Cell(
        "PUT", "/groups/{name}", plain("/groups/day", {"members": ["eve"], "caps": {"health": {"epsilon": 2}}})
    ),
    "remove_group": Cell("DELETE", "/groups/{name}", a_group, 204),
    "tokens": Cell("GET", "/tokens", plain("/tokens")),
    "issue": Cell("POST", "/tokens", plain("/tokens", {"name": "zoe", "role": "auditor"}), 201),
    "revoke": Cell("DELETE", "/tokens/{number}", a_token, 204),
    "config": Cell("GET", "/config", plain("/config")),
    "check": Cell("POST", "/config/check", plain("/config/check", {"text": "version: 1\n"})),
    "apply": Cell("PUT", "/config", the_config),
    "history": Cell("GET", "/ledger", plain("/ledger")),
    "verify": Cell("POST", "/ledger/verify", plain("/ledger/verify")),
    "review": Cell("POST", "/ledger/review", a_failure),
    "streams": Cell("GET", "/streams", plain("/streams")),
    "begin_stream": Cell("POST", "/streams", a_charged_stream, 201),
    "stream": Cell("GET", "/streams/{name}", a_stream("")),
    "feed_stream": Cell("POST", "/streams/{name}/arrivals", a_stream("/arrivals", {"lines": ["7"]})),
    "answer_stream": Cell("POST", "/streams/{name}/answer", a_stream("/answer")),
    "end_stream": Cell("DELETE", "/streams/{name}", a_stream(""), 204),
    "attacks": Cell("GET", "/attacks", plain("/attacks")),
    "attack_runs": Cell("GET", "/attacks/runs", plain("/attacks/runs")),
    "begin_attack": Cell("POST", "/attacks/runs", a_study, 202),
    "attack_run": Cell("GET", "/attacks/runs/{number}", a_run),
    "cancel_attack": Cell("DELETE", "/attacks/runs/{number}", a_run),
}


def routes() -> dict[str, tuple[str, str]]:
    found = [route for part in (asking, governing, streams, attacks) for route in part.router.routes]
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
    elif role in MATRIX[cell.guard or operation]:
        assert answer.status_code == cell.status, answer.text
    else:
        assert (answer.status_code, answer.json()["code"]) == (403, "HB710")


def test_the_table_is_the_one_that_is_written_out_here() -> None:
    assert {method: set(roles) for method, roles in ROLES.items()} == MATRIX


def test_an_analyst_reads_neither_the_ledger_nor_who_else_there_is() -> None:
    for method in ("history", "verify", "figures", "analysts", "groups", "config", "tokens"):
        with pytest.raises(AccessError, match="HB710"):
            getattr(Service, method)(None, Principal("ana", "analyst", None, 0))


def test_every_method_that_takes_a_principal_is_guarded_by_the_table() -> None:
    taking = {
        name
        for name, method in inspect.getmembers(Service, inspect.isfunction)
        if "principal" in inspect.signature(method).parameters and not name.startswith("_")
    }
    assert taking == set(MATRIX)
    nobody = Principal("x", "stranger", None, 0)  # type: ignore[arg-type]
    for name in taking:
        with pytest.raises(AccessError, match="HB710"):
            getattr(Service, name)(None, nobody)


def test_a_method_that_is_not_in_the_table_can_be_called_by_nobody() -> None:
    from hubbub.server.roles import allowed

    class Made:
        @allowed
        def new(self, principal: Principal) -> None:
            """Planted: somebody forgot the table."""

    with pytest.raises(AccessError):
        Made().new(Principal("owner", "owner", None, 0))
