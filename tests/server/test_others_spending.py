"""What others spent: nothing that an analyst reads over HTTP tells two amounts within one tenth of a budget apart."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.page_visits import token
from tests.server.conftest import COUNT, Starter

#: Differ from one service to the next, whatever anybody spent.
_OWN = re.compile(r'name="(csrf|key)" value="[^"]*"|hub_\w+|data-key="[^"]*"|"instance":"[^"]*"|\d{4}-\d\d-\d\d[^"<]*')


def read_by_ana(start: Starter, folder: Path, spent: str, show: str) -> dict[str, str]:
    """Have ben spend so much, and give all that ana reads of budgets afterwards."""
    folder.mkdir()
    world: Any = start(folder)
    path = world.folder / "hubbub.yaml"
    text = path.read_text().replace("delta: 1e-7, per_query: 5}", f"per_query: 5, show: {show}}}")
    path.write_text(text.replace("ben: {health: {epsilon: 1},", "ben: {health: {epsilon: 4},"))
    world.service.current.reload()
    assert world.ask("ana", epsilon="0.1").status_code == 200
    assert world.ask("ben", epsilon=spent).status_code == 200
    client = world.client("ana")
    said = {"budget": client.get("/api/v1/budget").text}
    for epsilon in ("0.1", "5", "20"):
        said[f"estimate {epsilon}"] = client.post("/api/v1/estimate", json={"sql": COUNT, "epsilon": epsilon}).text
    said["refused"] = world.ask("ana", epsilon="20").text
    said["release"] = str(world.ask("ana", epsilon="0.1").json()["left"])
    page = world.client(None, follow_redirects=True)
    form = {"csrf": token(page.get("/sign-in")), "token": world.tokens["ana"], "next": "/"}
    assert page.post("/sign-in", data=form).status_code == 200
    for address in ("/", "/ask", "/datasets/health", "/explain"):
        said[address] = page.get(address).text
    return {name: _OWN.sub("…", each) for name, each in said.items()}


@pytest.mark.parametrize(("show", "apart"), [("rounded", set()), ("hidden", set()), ("exact", {"budget"})])
def test_no_reading_tells_two_amounts_of_one_tenth_apart(
    start_app: Starter, tmp_path: Path, show: str, apart: set[str]
) -> None:
    """Exact budgets differ, so the comparison can fail."""
    one, other = (read_by_ana(start_app, tmp_path / spent, spent, show) for spent in ("1.31", "1.32"))
    differing = {name for name in one if one[name] != other[name]}
    assert differing >= apart
    assert bool(differing) == bool(apart)


def test_the_owner_and_the_auditor_see_exact_amounts(app: Any) -> None:
    assert app.ask("ana", epsilon="0.1").status_code == 200
    assert app.ask("ben", epsilon="0.37").status_code == 200
    for who in ("owner", "auditor"):
        (view,) = app.client(who).get("/api/v1/budget", params={"analyst": "ana"}).json()["budgets"]
        assert {cap["spent"] for cap in view["caps"] if cap["scope"] == "dataset"} == {"47/100"}
    (mine,) = app.client("ana").get("/api/v1/budget").json()["budgets"]
    assert {cap["spent"] for cap in mine["caps"] if cap["scope"] == "dataset"} == {"31/10"}
