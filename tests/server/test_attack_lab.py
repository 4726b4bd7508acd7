"""The Attack lab: it reaches nobody's data, keeps what was sent in memory, and cannot be made to take the server."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.formparsers import MultiPartParser
from tests.fixtures.page_visits import Visitor, token

from hubbub.attacks import study_process as child_
from hubbub.attacks.base import AttackFinding, AttackStudy, Score, ceiling
from hubbub.attacks.catalogue import ATTACKS
from hubbub.attacks.study_process import PROGRAM, StudyProcess
from hubbub.errors import AccessError, HubbubError
from hubbub.server import middleware as border
from hubbub.server.attack_lab import Lab, StudyRequest, StudyRun

TAKING = "differencing"  # it takes a table, or makes one up
WANTED = StudyRequest("exhaustive", ("1",))
STUDY = AttackStudy(
    "exhaustive",
    "A <b>title</b>",
    ("Said.",),
    (
        AttackFinding("exact", None, Score(9, 9, 0.5), None),
        AttackFinding("hubbub", Fraction(1), Score(5, 9, 0.5), ceiling(Fraction(1))),
    ),
)


def child(program: str | None, seconds: float = 60) -> Callable[[], StudyProcess]:
    """Make children of a lab that run another program."""
    return partial(
        StudyProcess, seconds=seconds, memory=4 << 30, program=PROGRAM if program is None else ("-c", program)
    )


@pytest.fixture
def labs() -> Iterator[Callable[..., Lab]]:
    """Open labs, whose child may be another program; all are closed at the end."""
    made: list[Lab] = []

    def open_one(program: str | None = None, *, seconds: float = 60) -> Lab:
        made.append(Lab(running=1, child=child(program, seconds)))
        return made[-1]

    yield open_one
    for each in made:
        each.close()


def ended(run: StudyRun, seconds: float = 120) -> StudyRun:
    until = time.monotonic() + seconds
    while not run.ended:
        assert time.monotonic() < until
        time.sleep(0.02)
    return run


def started(run: StudyRun) -> "subprocess.Popen[bytes]":
    while (process := run.child._process) is None:
        time.sleep(0.01)
    return process


def telling(expression: str) -> str:
    """A child that answers with a study whose sentence is the value of an expression, as JSON."""
    study = {**STUDY.to_json(), "words": []}
    return (
        f"import json, os, sys\norder = json.loads(sys.stdin.readline())\nstudy = {study!r}\n"
        f"study['words'] = [json.dumps({expression})]\nprint(json.dumps({{'study': study}}), flush=True)\n"
    )


SLEEPING = "import sys, time\nsys.stdin.readline()\ntime.sleep(60)"


# --- what a child gets ------------------------------------------------------------------------------------------------


def test_a_study_runs_in_a_child_and_comes_back(labs: Callable[..., Lab]) -> None:
    run = ended(labs().begin("analyst ana", StudyRequest("exhaustive", ("0.5", "4"), settings={"people": "4"})))
    assert run.problem is None
    assert run.state == "done"
    assert run.study is not None
    assert run.study.attack == "exhaustive"
    assert {each.epsilon for each in run.study.findings} == {None, Fraction(1, 2), Fraction(4)}
    assert run.terms()["Settings"] == "people = 4"


def test_a_child_knows_its_order_and_its_folder_in_memory_and_nothing_else(
    labs: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBBUB_SECRET", "s3cret")
    monkeypatch.setenv("HUBBUB_CONFIG", "/srv/hubbub.yaml")
    facts = "[dict(os.environ), os.getcwd(), oct(os.stat('.').st_mode), sorted(map(int, os.listdir('/proc/self/fd')))]"
    run = ended(labs(telling(facts)).begin("x", WANTED))
    assert run.study is not None
    environment, folder, mode, descriptors = json.loads(run.study.words[0])
    assert set(environment) - {"LC_CTYPE"} == {
        "TMPDIR",
        "HOME",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
    }
    assert environment["TMPDIR"] == folder
    assert folder.startswith("/dev/shm/hubbub-lab-")
    assert mode == "0o40700"
    assert len([each for each in descriptors if each > 2]) <= 1  # the one that lists them
    assert not Path(folder).exists()


def test_an_order_names_no_file_but_those_that_come_with_hubbub(labs: Callable[..., Lab]) -> None:
    run = ended(labs(telling("sorted(order)")).begin("x", WANTED))
    assert run.study is not None
    assert json.loads(run.study.words[0]) == ["attack", "csv", "epsilons", "memory", "seconds", "settings", "table"]
    for table in ("wards", "health.csv", "../demo/health.csv", "/etc/passwd", "hubbub.yaml", "", "HEALTH", "up load"):
        with pytest.raises(HubbubError, match="HB642"):
            labs().begin("x", StudyRequest(TAKING, ("1",), table))


def test_what_was_sent_reaches_the_child_and_is_gone_afterwards(labs: Callable[..., Lab]) -> None:
    content = b"a,b\n1,unmistakable-7f3a\n"
    facts = "[order['csv'], open('kept', 'w').write(order['csv']), os.getcwd()]"
    opened = labs(telling(facts))
    run = ended(opened.begin("x", StudyRequest(TAKING, ("1",), "upload", content)))
    assert run.study is not None
    text, _, folder = json.loads(run.study.words[0])
    assert text.encode() == content
    assert not Path(folder).exists()
    assert run.table == f"uploaded, {len(content)} bytes, SHA-256 {sha256(content).hexdigest()}"
    kept = [value for each in (run, run.child) for name, value in vars(each).items() if name != "study"]
    assert "unmistakable" not in repr(kept)


def test_without_memory_to_lay_it_in_a_table_is_not_taken(
    labs: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(child_, "_IN_MEMORY", tmp_path / "nowhere")
    run = ended(labs(telling("1")).begin("x", StudyRequest(TAKING, ("1",), "upload", b"a\n1\n")))
    assert run.problem is not None
    assert run.problem.code == "HB645"
    assert ended(labs(telling("1")).begin("x", WANTED)).state == "done"


def test_a_file_in_a_form_is_too_short_to_be_laid_on_a_disk() -> None:
    assert MultiPartParser.spool_max_size >= border.MAX_BODY


# --- what a child may take --------------------------------------------------------------------------------------------


def test_a_child_that_takes_too_long_is_killed(labs: Callable[..., Lab]) -> None:
    run = labs(SLEEPING, seconds=0.5).begin("x", WANTED)
    process = started(run)
    ended(run)
    assert run.state == "failed"
    assert run.problem is not None
    assert run.problem.code == "HB649"
    assert process.poll() is not None


@pytest.mark.parametrize(
    "program",
    [
        "raise SystemExit(3)",
        "import sys; sys.stdin.readline(); print('no json', flush=True)",
        "import sys; sys.stdin.readline(); print('{\"study\": {}}', flush=True)",
        "import sys; sys.stdin.readline(); sys.stdout.write('x' * (8 << 20)); sys.stdout.flush()",
        "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    ],
    ids=["gone", "no JSON", "no study", "a flood", "killed"],
)
def test_a_child_that_fails_is_a_study_that_failed(labs: Callable[..., Lab], program: str) -> None:
    run = ended(labs(program).begin("x", WANTED))
    assert run.state == "failed"
    assert run.problem is not None
    assert run.problem.code == "HB648"


def test_a_child_is_bounded_in_memory_and_files_and_comes_last() -> None:
    program = (
        "import os, resource\nfrom hubbub.attacks.study_worker import confine\n"
        # the tests themselves may run at a priority that is not 0; 19 is the least there is
        "least = min(19, os.nice(0) + 10)\nconfine(memory=2 << 30, seconds=60)\nassert os.nice(0) == least\n"
        "assert open('/proc/self/oom_score_adj').read().strip() == '1000'\n"
        "assert resource.getrlimit(resource.RLIMIT_CPU) == (60, 60)\n"
        "try:\n    bytearray(4 << 30)\nexcept MemoryError:\n    print('bounded')\n"
    )
    found = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "bounded", found.stderr


def test_everybody_has_one_at_a_time_and_the_line_is_short(labs: Callable[..., Lab]) -> None:
    opened = labs(SLEEPING)
    first = opened.begin("0", WANTED)
    with pytest.raises(AccessError, match="HB725"):
        opened.begin("0", WANTED)
    runs = [opened.begin(str(number), WANTED) for number in range(1, 9)]
    with pytest.raises(AccessError, match="HB725"):
        opened.begin("9", WANTED)
    time.sleep(0.3)
    assert sum(run.state == "running" for run in [first, *runs]) == 1
    opened.cancel(first)
    assert first.state == "cancelled"
    again = opened.begin("0", WANTED)
    for run in (*runs, again):
        opened.cancel(run)
    assert {run.state for run in (*runs, again)} == {"cancelled"}
    assert ended(labs(telling("1")).begin("x", WANTED)).state == "done"


def test_only_the_last_few_studies_are_kept(labs: Callable[..., Lab]) -> None:
    opened = labs(telling("1"))
    runs = [ended(opened.begin("x", WANTED)) for _ in range(7)]
    assert opened.latest("x", StudyRun) == tuple(reversed(runs[2:]))
    assert opened.latest("y", StudyRun) == ()
    with pytest.raises(HubbubError, match="HB164"):
        opened.find("x", runs[0].id, StudyRun)
    with pytest.raises(HubbubError, match="HB164"):
        opened.find("y", runs[-1].id, StudyRun)


def test_a_lab_that_closes_leaves_no_child(labs: Callable[..., Lab]) -> None:
    opened = labs(SLEEPING)
    run = opened.begin("x", WANTED)
    process = started(run)
    opened.close()
    assert process.poll() is not None
    assert run.state == "cancelled"
    with pytest.raises(HubbubError, match="HB319"):
        opened.begin("y", WANTED)


def test_a_child_whose_server_is_gone_goes_too_and_cleans_up(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "rows.csv").write_text("a\n1\n")
    order = {
        "attack": "reconstruction",
        "epsilons": ["1"],
        "settings": {"people": "4000"},
        "table": "made up",
        "csv": None,
        "memory": 4 << 30,
        "seconds": 100,
    }
    child = subprocess.Popen(
        [sys.executable, "-I", "-m", "hubbub.attacks.study_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={"TMPDIR": str(folder), "OMP_NUM_THREADS": "1"},
    )
    assert child.stdin is not None
    child.stdin.write(json.dumps(order).encode() + b"\n")
    child.stdin.flush()
    time.sleep(0.2)
    child.stdin.close()
    assert child.wait(60) == 1
    assert not folder.exists()


# --- through the server -----------------------------------------------------------------------------------------------


def send(client: httpx2.Client, content: bytes = b"", /, **fields: str) -> httpx2.Response:
    data = {"csrf": token(client.get("/explain/lab")), "attack": "exhaustive", "table": "made up", "epsilons": "1"}
    files = {"file": ("../../x.csv", content, "text/csv")}
    return client.post("/explain/lab", data=data | fields, files=files)


def shown(client: httpx2.Client, page: httpx2.Response) -> str:
    """Reload the page of a study, as its visitor does without a script, until it has ended."""
    until = time.monotonic() + 120
    while 'http-equiv="refresh"' in page.text:
        assert time.monotonic() < until
        time.sleep(0.1)
        page = client.get(str(page.url))
    return page.text


def state_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and "server.db" not in path.name
    }


def test_a_study_on_the_pages_touches_nothing_of_the_server(app: Any, visitor: Visitor) -> None:
    client = visitor("ana")
    before = state_of(app.folder)
    page = shown(client, send(client, epsilons="0.5, 4", **{"set-people": "4"}))
    assert "Success rate by ε" in page
    assert page.count(">within the guarantee") == 2
    assert "people = 4" in page
    assert state_of(app.folder) == before
    assert app.spent() == {"health": "0"}


def test_what_is_shown_of_a_study_does_not_change_while_it_is_shown(labs: Callable[..., Lab]) -> None:
    """A study that ended between two looks of its page was neither under way nor done, and the page was empty."""
    opened = labs(SLEEPING)
    run = opened.begin("analyst ana", WANTED)
    seen = opened.snapshot("analyst ana", run.id, StudyRun)
    opened.cancel(run)
    assert seen.state in ("queued", "running")
    assert opened.snapshot("analyst ana", run.id, StudyRun).state == "cancelled"


def test_reports_are_taken_away_as_files(visitor: Visitor, app: Any) -> None:
    app.service.lab._child = child(telling("'said'"))
    client = visitor("auditor")
    page = send(client)
    shown(client, page)
    where = page.url.path
    expected = {"html": b"<!doctype html>", "pdf": b"%PDF-", "svg": b"<svg", "json": b"{"}
    for form, start in expected.items():
        answer = client.get(f"{where}.{form}")
        assert answer.status_code == 200
        assert answer.content.startswith(start)
        assert answer.headers["Content-Disposition"] == f'attachment; filename="hubbub-exhaustive.{form}"'
    assert "<b>title</b>" not in client.get(f"{where}.html").text
    assert AttackStudy.read(client.get(f"{where}.json?show=promise").json()).findings == STUDY.findings[1:]
    assert AttackStudy.read(client.get(f"{where}.json?show=none").json()).findings == STUDY.findings[:1]
    assert AttackStudy.read(client.get(f"{where}.json?show=%3Dexact").json()).findings == STUDY.findings[:1]
    assert AttackStudy.read(client.get(f"{where}.json?show=%3Cb%3E").json()).findings == STUDY.findings
    assert client.get(f"{where}.exe").status_code == 404
    assert client.get(f"/explain/lab/{'0' * 32}.html").status_code == 404


def test_a_study_is_seen_by_whoever_began_it(visitor: Visitor, app: Any) -> None:
    app.service.lab._child = child(telling("'said'"))
    client = visitor("ana")
    page = send(client)
    assert "said" in shown(client, page)
    for who in ("ben", "owner", "auditor"):
        other = visitor(who)
        for path in ("", ".html", "/state"):
            assert other.get(f"{page.url.path}{path}").status_code == 404
        assert other.post(f"{page.url.path}/cancel", data={"csrf": token(other.get("/"))}).status_code == 404


def test_a_study_can_be_cancelled(visitor: Visitor, app: Any) -> None:
    app.service.lab._child = child(SLEEPING)
    client = visitor("ana")
    page = send(client)
    assert 'http-equiv="refresh"' in page.text
    assert client.get(f"{page.url.path}/state").json()["state"] in ("queued", "running")
    second = send(client)
    assert second.status_code == 429
    assert "HB725" in second.text
    assert second.text.count("Run attack") == 1
    stopped = client.post(f"{page.url.path}/cancel", data={"csrf": token(page)})
    assert "was cancelled" in stopped.text
    assert client.get(f"{page.url.path}.html").status_code == 404


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"a,b\n" + b"x" * (1 << 20), 413, "HB162"),
        (os.urandom(5000), 422, "HB645"),
        (b"a,b\n1,\0\n", 422, "HB645"),
        (b"", 422, "HB645"),
        (b"PK\x03\x04" + b"\0" * 100, 422, "HB645"),
    ],
    ids=["huge", "binary", "NUL", "nothing", "a zip"],
)
def test_hostile_files_are_refused_at_the_door(
    visitor: Visitor, app: Any, content: bytes, status: int, code: str
) -> None:
    client = visitor("ana")
    answer = send(client, content, attack=TAKING, table="upload")
    assert answer.status_code == status
    assert code in answer.text
    assert app.service.lab.latest("analyst ana", StudyRun) == ()


@pytest.mark.parametrize(
    "content",
    [
        b"<script>alert(1)</script>,<script>alert(1)</script>\n1,2\n",
        b"a,b\n" + b"1\n" * 1000,
        b"a\n" + b"1\n" * 150_000,
        b"," * 900_000,
        b'a,"b\n1,2\n',
    ],
    ids=["HTML", "ragged", "rows", "commas", "quotes"],
)
def test_hostile_tables_are_refused_by_the_child(visitor: Visitor, content: bytes) -> None:
    client = visitor("ana")
    page = shown(client, send(client, content, attack=TAKING, table="upload"))
    assert "HB645" in page
    assert "<script>alert" not in page


def test_names_and_values_that_look_like_code_are_shown_as_text(visitor: Visitor) -> None:
    rows = "".join(f"=cmd|' /C calc'!A{n % 7},{n},<img src=x onerror=alert(1)>\n" for n in range(300))
    client = visitor("ana")
    sent = send(client, f"<b>who</b>,n,{{{{ 7 * 7 }}}}\n{rows}".encode(), attack=TAKING, table="upload")
    page = shown(client, sent)
    assert "Success rate by ε" in page
    for planted in ("<img src=x", "<b>who", "49</"):
        assert planted not in page


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"epsilons": ""}, "HB643"),
        ({"epsilons": "1,,2"}, "HB643"),
        ({"epsilons": "abc"}, "HB1"),
        ({"epsilons": "-1"}, "HB1"),
        ({"epsilons": "nan"}, "HB1"),
        ({"epsilons": ",".join("1" * 13)}, "HB643"),
        ({"attack": "nothing"}, "HB640"),
        ({"table": "upload"}, "HB64"),
        ({"table": "health"}, "HB642"),
    ],
)
def test_what_cannot_be_run_is_said_on_the_form(visitor: Visitor, fields: dict[str, str], code: str) -> None:
    answer = send(visitor("ana"), **fields)
    assert answer.status_code == 422
    assert code in answer.text
    assert "Run attack" in answer.text


def test_a_setting_that_cannot_be_is_said_on_the_page_of_the_run(visitor: Visitor) -> None:
    client = visitor("ana")
    page = shown(client, send(client, **{"set-people": "many"}))
    assert "HB643" in page
    assert 'set-people=many"' in page.replace("&amp;show=all", "")


def test_the_api_runs_a_study_too(app: Any) -> None:
    client = app.client("ana")
    known = client.get("/api/v1/attacks").json()["attacks"]
    assert {each["name"] for each in known} == set(ATTACKS)
    body = {"attack": "exhaustive", "epsilons": ["1/2"], "settings": {"people": 4}}
    answer = client.post("/api/v1/attacks/runs", json=body)
    assert answer.status_code == 202
    place = answer.headers["Location"]
    until = time.monotonic() + 120
    while (found := client.get(place).json())["state"] in ("queued", "running"):
        assert time.monotonic() < until
        time.sleep(0.1)
    assert found["state"] == "done", found
    assert AttackStudy.read(found["study"]).findings[-1].epsilon == Fraction(1, 2)
    assert [each["id"] for each in client.get("/api/v1/attacks/runs").json()["runs"]] == [found["id"]]
    assert app.client("ben").get(place).status_code == 404
    assert app.client("ben").delete(place).status_code == 404
    for wrong in ({"attack": "exhaustive", "epsilons": []}, {**body, "table": "wards"}, {**body, "attack": "none"}):
        assert client.post("/api/v1/attacks/runs", json=wrong).status_code == 422
