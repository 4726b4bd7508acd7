"""The pages of the crowd sanitizers: every role may run a study, in the bounded process of the lab."""

import time
from collections.abc import Callable, Iterator

import httpx2
import pytest
from tests.fixtures.page_visits import Visitor, token
from tests.server.test_attack_lab import WANTED, child

from hubbub.crowd.disclaimers import NOT_PRIVATE
from hubbub.crowd.studies.catalogue import STUDIES
from hubbub.errors import AccessError, HubbubError
from hubbub.server.attack_lab import CrowdRequest, CrowdRun, Lab, StudyRun

FEW = {"study": "smoothness", "set-trials": "50", "set-dimensions": "4,8"}


def begin(client: httpx2.Client, **fields: str) -> httpx2.Response:
    return client.post("/explain/crowd", data={"csrf": token(client.get("/explain/crowd")), **FEW, **fields})


def finished(client: httpx2.Client, answer: httpx2.Response) -> tuple[str, str]:
    """Wait for a study; return its address and its page."""
    address = answer.headers["location"] if answer.is_redirect else str(answer.url.path)
    until = time.monotonic() + 120
    while client.get(f"{address}/state").json()["state"] in ("queued", "running"):
        assert time.monotonic() < until
        time.sleep(0.05)
    return address, client.get(address).text


def test_every_study_is_offered_with_its_settings_and_the_warning(visitor: Visitor) -> None:
    client = visitor("ana")
    for entry in STUDIES.values():
        answer = client.get(f"/explain/crowd?study={entry.name}")
        assert answer.status_code == 200, (entry.name, answer.text[-900:])
        page = answer.text
        assert NOT_PRIVATE in page
        assert f'<h2 id="study-heading">{entry.name}</h2>' in page
        for setting in entry.settings:
            assert f'name="set-{setting}"' in page
    assert '<h2 id="study-heading">isolation</h2>' in client.get("/explain/crowd?study=magic").text


def test_a_study_is_run_shown_and_its_plot_taken_away(visitor: Visitor) -> None:
    client = visitor("auditor")
    address, page = finished(client, begin(client))
    assert NOT_PRIVATE in page
    assert "with the histogram" in page
    assert 'class="chart"' in page
    assert "trials = 50" in page
    plot = client.get(f"{address}.svg")
    assert plot.headers["content-type"].startswith("image/svg+xml")
    assert plot.headers["content-disposition"] == 'attachment; filename="hubbub-smoothness.svg"'
    assert plot.text.count("<circle") == 4
    assert visitor("ana").get(address).status_code == 404  # everyone sees their own
    assert visitor("ana").get(f"{address}.svg").status_code == 404
    assert client.get(address.replace("/crowd/", "/lab/")).status_code == 404  # nor is it an attack


def test_a_setting_that_cannot_be_is_an_error_of_the_study(visitor: Visitor) -> None:
    client = visitor("ana")
    for fields, code in (
        ({"set-trials": "<b>"}, "HB685"),
        ({"set-trials": "9" * 30}, "HB103"),
        ({"set-no": "1"}, "HB685"),
    ):
        _, page = finished(client, begin(client, **fields))
        assert code in page
        assert "<b>" not in page
    assert "HB684" in begin(client, study="magic").text


def test_a_study_and_an_attack_share_one_place_and_can_be_cancelled(labs: Callable[..., Lab]) -> None:
    lab = labs("import sys, time\nsys.stdin.readline()\ntime.sleep(60)")
    run = lab.begin_crowd("analyst ana", CrowdRequest("cubes"))
    with pytest.raises(AccessError, match="HB725"):
        lab.begin("analyst ana", WANTED)
    with pytest.raises(AccessError, match="HB725"):
        lab.begin_crowd("analyst ana", CrowdRequest("cubes"))
    with pytest.raises(HubbubError, match="HB164"):
        lab.find("analyst ana", run.id, StudyRun)
    with pytest.raises(HubbubError, match="HB164"):
        lab.find("analyst ben", run.id, CrowdRun)
    lab.cancel(lab.find("analyst ana", run.id, CrowdRun))
    assert run.ended
    assert lab.latest("analyst ana", StudyRun) == ()
    assert [each.id for each in lab.latest("analyst ana", CrowdRun)] == [run.id]


def test_a_child_that_lies_about_its_study_is_a_study_that_failed(labs: Callable[..., Lab]) -> None:
    lab = labs('import sys\nsys.stdin.readline()\nprint(\'{"study": {"words": 3}}\', flush=True)')
    run = lab.begin_crowd("analyst ana", CrowdRequest("cubes"))
    until = time.monotonic() + 60
    while not run.ended:
        assert time.monotonic() < until
        time.sleep(0.02)
    assert run.state == "failed"
    assert run.problem is not None
    assert run.problem.code == "HB648"


@pytest.fixture
def labs() -> Iterator[Callable[[str], Lab]]:
    """Open labs whose child may be another program; all are closed at the end."""
    opened: list[Lab] = []

    def open_one(program: str) -> Lab:
        opened.append(Lab(running=1, child=child(program)))
        return opened[-1]

    yield open_one
    for lab in opened:
        lab.close()
