"""Queries that find their bounds: honest receipts are sound, forged ones are not, and a retry finds the same."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures import auto_tables

from hubbub.analyses.base import EngineRun
from hubbub.audit import release as releases
from hubbub.audit.receipt import check_receipt
from hubbub.audit.replan import plan_again
from hubbub.config import load
from hubbub.core.secret import Secret
from hubbub.core.unit import Relation
from hubbub.curator.question import Question
from hubbub.curator.session import Session, open_session
from hubbub.errors import RunError
from hubbub.noise.source import system
from hubbub.sql.auto_bounds import ChosenBound, LevelHistogram

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: {column: patient, entity: patient, rows: auto, max_rows: 50}
    relation: RELATION
    columns:
      patient: {type: integer}
      region: {values: [North, South, East]}
      age: {type: integer, bounds: [0, 110]}
      word: {type: text}
    budget: {epsilon: 1000, delta: 1e-5}
  labs:
    source: labs.csv
    unit: {column: patient, entity: patient, rows: auto}
    relation: RELATION
    columns: {patient: {type: integer}, result: {type: real, bounds: [-5, 5]}}
    budget: {epsilon: 1000, delta: 1e-5}
analysts: {ana: {visits: {epsilon: 1000, delta: 1e-5}, labs: {epsilon: 1000, delta: 1e-5}}}
"""
QUERIES = {
    "count": "SELECT COUNT(*) AS n FROM visits",
    "sums": "SELECT region, SUM(age) AS s, COUNT(*) AS n, COUNT(DISTINCT patient) AS p FROM visits GROUP BY region",
    "means": "SELECT AVG(age) AS a, STDDEV(age) AS d FROM visits",
    "order": "SELECT region, MEDIAN(age) AS m, MODE(region) AS r FROM visits GROUP BY region",
    "rollup": "SELECT region, COUNT(*) AS n FROM visits GROUP BY ROLLUP (region)",
    "units": "SELECT COUNT(DISTINCT patient) AS n FROM visits",
    "found": "SELECT word, COUNT(*) AS n FROM visits GROUP BY word",
    "top": "SELECT region FROM visits GROUP BY region ORDER BY COUNT(*) DESC LIMIT 2",
    "joined": "SELECT SUM(result) AS s FROM visits JOIN labs ON visits.patient = labs.patient",
}
Paper = dict[str, Any]


def _clinic(folder: Path, relation: str = "add_remove") -> Path:
    lines = [f"{i * i % 90},{['North', 'South', 'East'][i % 3]},{i % 100},w{i % 4}" for i in range(600)]
    folder.mkdir(exist_ok=True)
    (folder / "visits.csv").write_text("\n".join(["patient,region,age,word", *lines]) + "\n")
    (folder / "labs.csv").write_text("patient,result\n" + "".join(f"{i % 90},{i % 9 - 4}\n" for i in range(200)))
    (folder / "hubbub.yaml").write_text(YAML.replace("RELATION", relation))
    return folder / "hubbub.yaml"


@pytest.fixture(scope="module", params=["add_remove", "replace"])
def papers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Paper]]:
    path = _clinic(tmp_path_factory.mktemp("auto"), request.param)
    with open_session(path, analyst="ana") as session:
        made = {name: session.query(sql, epsilon="2").document() for name, sql in QUERIES.items()}
        again = session.query(QUERIES["sums"], epsilon="2")
        assert again.replayed
        assert again.document()["answer"] == made["sums"]["answer"]
    return path, json.loads(json.dumps(made))


@pytest.mark.parametrize("name", QUERIES)
def test_an_honest_release_is_sound(papers: tuple[Path, dict[str, Paper]], name: str) -> None:
    path, known = papers
    document = known[name]
    checked = check_receipt(document)
    assert checked.problems == []
    assert "charged: 2" in checked.loss
    kinds = [draw["kind"] for draw in document["receipt"]["draws"]]
    assert ("levels" in kinds) == (name not in ("units", "top"))
    number = document["receipt"]["ledger"][0]["sequence"]
    audited = releases.audit(load(path), number, worlds=3, chance=random.Random(4))
    assert audited.problems == []
    assert audited.left_out == []
    assert any("replayed on simulated data" in line for line in audited.lines)


def _draw(paper: Paper, kind: str) -> tuple[Paper, Paper]:
    """Return the first draw of a kind, and its event."""
    place = next(i for i, draw in enumerate(paper["draws"]) if draw["kind"] == kind)
    return paper["draws"][place], paper["event"]["parts"][place][0]


def _less_noise(kind: str, by: Fraction) -> Callable[[Paper], None]:
    def forge(paper: Paper) -> None:
        draw, event = _draw(paper, kind)
        for facts in (draw["noise"], event):
            facts["scale"] = str(Fraction(facts["scale"]) * by)

    return forge


def _without_levels(paper: Paper) -> None:
    for place, draw in reversed(list(enumerate(paper["draws"]))):
        if draw["kind"] == "levels":
            del paper["draws"][place], paper["event"]["parts"][place]


def _no_flag(paper: Paper) -> None:
    del paper["bounds"]["auto"]


def _more_added(paper: Paper) -> None:
    draw, _ = _draw(paper, "sum")
    draw["adds"] = [0, 110]


def _less_stated(paper: Paper) -> None:
    draw, event = _draw(paper, "levels")
    for facts in (draw["noise"], event):
        facts["sensitivity"] = 0


def _other_relation(paper: Paper) -> None:
    paper["relation"] = "add_remove" if paper["relation"] == "replace" else "replace"
    if paper["relation"] == "add_remove":
        _less_stated(paper)


FORGERIES: dict[str, Callable[[Paper], None]] = {
    "less noise on levels": _less_noise("levels", Fraction(9, 10)),
    "less noise on sums": _less_noise("sum", Fraction(9, 10)),
    "no levels": _without_levels,
    "bounds are declared": _no_flag,
    "a row adds more": _more_added,
    "a unit moves no level": _less_stated,
    "another relation": _other_relation,
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_receipt_is_refused(papers: tuple[Path, dict[str, Paper]], forgery: str) -> None:
    for name in ("count", "sums", "rollup"):
        document = copy.deepcopy(papers[1][name])
        FORGERIES[forgery](document["receipt"])
        assert not check_receipt(document).sound, name


def test_declared_bounds_that_are_called_found_are_refused(tmp_path: Path) -> None:
    """In multiples of a bound nobody needs much noise: someone must have found the bound."""
    path = _clinic(tmp_path)
    path.write_text(path.read_text().replace("rows: auto, max_rows: 50", "groups: 2, rows: 5"))
    with open_session(path, analyst="ana") as session:
        document = json.loads(json.dumps(session.query(QUERIES["count"], epsilon="2").document()))
    assert check_receipt(document).sound
    receipt = document["receipt"]
    receipt["bounds"]["auto"] = True
    assert "no draw finds them" in check_receipt(document).problems[0]
    receipt["draws"].insert(
        0, {"kind": "levels", "what": "levels", "noise": copy.deepcopy(receipt["draws"][0]["noise"])}
    )
    receipt["event"]["parts"].insert(0, copy.deepcopy(receipt["event"]["parts"][0]))
    assert not check_receipt(document).sound, "both draws together cost more than was charged"


# --- one charge, one bound -------------------------------------------------------------------------------------------


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with open_session(_clinic(tmp_path), analyst="ana") as opened:
        yield opened


def test_a_retry_after_a_failure_finds_the_same_bounds(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    choose = LevelHistogram.choose
    curator, statements = session._curator, list[str]()
    run, record = curator.engine.run, curator.ledger.record

    def choosing(*given: Any) -> ChosenBound:
        seen.append(choose(*given))
        return seen[-1]  # type: ignore[no-any-return]

    def running(sql: str) -> Any:
        statements.append(sql)
        return run(sql)

    monkeypatch.setattr(LevelHistogram, "choose", choosing)
    monkeypatch.setattr(curator.engine, "run", running)
    monkeypatch.setattr(curator.ledger, "record", lambda *_: 1 / 0)
    with pytest.raises(RunError, match="HB900"):
        session.query(QUERIES["sums"], epsilon="0.3", key="k")
    monkeypatch.setattr(curator.ledger, "record", record)
    first, asked = list(seen), list(statements)
    assert len(first) == 3
    release = session.query(QUERIES["sums"], epsilon="0.3", key="k")
    assert seen == [*first, *first]
    assert statements == [*asked, *asked]
    assert check_receipt(json.loads(json.dumps(release.document()))).sound


def test_what_the_engine_is_asked_follows_from_the_noisy_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the data are, the second round is a function of the bounds alone."""
    monkeypatch.setattr(
        LevelHistogram, "choose", lambda self, *_: ChosenBound(self.levels[2], 0.0, 0.0, 1.0, 1.0, self.contribution)
    )
    text = "SELECT k, count(*), sum(x), count(DISTINCT u), median(y) FROM t GROUP BY k"
    question, known = Question(text, epsilon=1), auto_tables.tables(Relation.ADD_REMOVE)
    rounds = []
    with auto_tables.connect() as connection:
        for removed in (-2, 0, 1, 2):
            auto_tables.show(connection, removed=removed)
            asked: list[str] = []

            def ask(sql: str, asked: list[str] = asked) -> Secret[Any]:
                asked.append(sql)
                return Secret(dict(connection.execute(sql).fetchnumpy()))

            prepared = plan_again(question, known, salt="s", hashing="engine")
            prepared.run(EngineRun(ask, system(), lambda _, __: None))
            rounds.append(asked)
    assert len(rounds[0]) == 3 + 4
    assert all(each == rounds[0] for each in rounds)


def test_a_failure_in_either_round_is_the_same_message(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = session._curator.engine
    run, messages = engine.run, set[str]()
    for failing in (0, 2, 4):  # three statements find the bounds, the others run at them; three failures are allowed
        asked = iter(range(100))

        def fail(sql: str, failing: int = failing, asked: Iterator[int] = asked) -> Any:
            if next(asked) == failing:
                raise RuntimeError(f"statement {failing} failed on 7431")
            return run(sql)

        monkeypatch.setattr(engine, "run", fail)
        with pytest.raises(RunError, match="HB900") as caught:
            session.query(QUERIES["sums"], epsilon="0.3", key=f"k{failing}")
        assert next(asked) == failing + 1
        messages.add(str(caught.value))
    assert len(messages) == 1
