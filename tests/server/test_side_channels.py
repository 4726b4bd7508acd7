"""Two datasets that differ by one person: the same request gets the same status, headers, size and charge."""

from pathlib import Path
from typing import Any

import pytest

from hubbub.core.secret import Secret
from hubbub.engines.base import Arrays
from hubbub.server.problems import release_response

REQUESTS: dict[str, dict[str, Any]] = {
    "count": {"sql": "SELECT COUNT(*) AS n FROM health"},
    "one person": {"sql": "SELECT COUNT(*) AS n FROM health WHERE person = 125024"},
    "nobody": {"sql": "SELECT COUNT(*) AS n FROM health WHERE person = -1"},
    "groups": {
        "sql": "SELECT site, year, COUNT(*) AS n, AVG(age) AS a FROM health GROUP BY site, year",
        "epsilon": "2",
    },
    "average of nobody": {"sql": "SELECT AVG(spending) AS s FROM health WHERE age > 64 AND visits > 79"},
    "division": {"sql": "SELECT SUM(visits) / COUNT(*) AS v FROM health WHERE person = 125024"},
    "cast": {"sql": "SELECT COUNT(*) AS n FROM health WHERE CAST(health AS INTEGER) = 1"},
    "join": {"sql": "SELECT word, COUNT(*) AS n FROM health JOIN plans USING (coinsurance) GROUP BY word"},
    "median": {"sql": "SELECT MEDIAN(age) AS m FROM health"},
    "raw": {"sql": "SELECT COUNT(*) AS n FROM health WHERE person = 125024", "raw": True, "epsilon": "0.01"},
    "refused": {"sql": "SELECT * FROM health WHERE person = 125024"},
    "unknown": {"sql": "SELECT COUNT(*) FROM wards"},
    "too much": {"sql": "SELECT COUNT(*) AS n FROM health", "epsilon": "5.5"},
    "nonsense": {"sql": "SELECT SELECT"},
}
#: What may differ: the request's number and the time of day.
APART = {"x-request-id", "date"}


def observed(world: Any, name: str) -> tuple[Any, ...]:
    """Everything about an answer that is not the release: what somebody on the line sees, and the charge."""
    before = world.spent()
    answer = world.ask(header=name, key=name, **REQUESTS[name])
    headers = {key: value for key, value in answer.headers.items() if key not in APART}
    code = None if answer.status_code == 200 else {**answer.json(), "instance": ""}
    return answer.status_code, headers, len(answer.content), code, before, world.spent()


@pytest.fixture
def neighbors(start_app: Any, tmp_path: Path) -> tuple[Any, Any]:
    """The demo's data with person 125024, and without."""
    worlds = []
    for name in ("with", "without"):
        (tmp_path / name).mkdir()
        worlds.append(start_app(tmp_path / name))
    data = tmp_path / "without" / "health.csv"
    lines = data.read_text().splitlines(keepends=True)
    place = lines[0].strip().split(",").index("person")
    kept = [line for line in lines if line.strip().split(",")[place] != "125024"]
    assert len(kept) < len(lines)
    data.write_text("".join(kept))
    return worlds[0], worlds[1]


def test_neighbors_get_the_same_status_headers_size_and_charge(neighbors: tuple[Any, Any]) -> None:
    statuses = set()
    for name in REQUESTS:
        there, away = (observed(world, name) for world in neighbors)
        assert there == away, name
        statuses.add(there[0])
    assert statuses == {200, 409, 422}


def test_a_run_that_fails_looks_the_same_whatever_it_failed_of(neighbors: tuple[Any, Any]) -> None:
    texts = ("Conversion Error: could not convert 'CANARY-7431' of person 125024", "Out of Memory")
    for world, text in zip(neighbors, texts, strict=True):

        def broken(_: str, text: str = text) -> Secret[Arrays]:
            raise ValueError(text)

        world.service.current.curator.engine.run = broken
    there, away = (observed(world, "count") for world in neighbors)
    assert there == away
    assert there[0] == 424
    assert there[4:] == ({"health": "0"}, {"health": "1/10"})  # and it costs the same


def test_the_size_of_an_answer_does_not_depend_on_its_numbers(app: Any) -> None:
    """Twenty draws of one query: numbers of many lengths, one size."""
    sizes, lengths = set(), set()
    for number in range(20):
        answer = app.ask(
            sql="SELECT site, COUNT(*) AS n, AVG(age) AS a FROM health GROUP BY site", key=f"{number}", epsilon="0.01"
        )
        assert answer.status_code == 200, answer.text
        sizes.add(len(answer.content))
        lengths.add(len(answer.content.rstrip()))
    assert len(lengths) > 5  # else this shows nothing
    assert len(sizes) == 1
    assert sizes.pop() % 1024 == 0


def test_estimates_and_budgets_do_not_look_at_the_data(neighbors: tuple[Any, Any]) -> None:
    def free(world: Any) -> list[Any]:
        ana, found = world.client("ana"), []
        for body in REQUESTS.values():
            answer = ana.post("/api/v1/estimate", json={"epsilon": "0.1", **body})
            found.append((answer.status_code, {**answer.json(), "instance": ""}))
        return [*found, ana.get("/api/v1/budget").json(), ana.get("/api/v1/datasets/health").json()]

    assert free(neighbors[0]) == free(neighbors[1])


def test_short_numbers_and_long_ones_take_the_same_room() -> None:
    def sent(value: float, rows: int) -> int:
        cells = [value] * rows
        column = {"name": "n", "kind": "real", "values": cells, "low": cells, "high": cells}
        key = {"name": "k", "kind": "text", "values": ["x"] * rows, "low": None, "high": None}
        form = {"answer": {"columns": [key, column], "ratio": cells}, "receipt": {"query": "q"}, "left": "1"}
        return len(release_response(form).body)

    for rows in (1, 7, 100, 5000):
        assert len({sent(value, rows) for value in (0.0, 7.5, -1.2345678901234567e-300, 1e22)}) == 1
    assert sent(0.0, 5000) > sent(0.0, 100)
