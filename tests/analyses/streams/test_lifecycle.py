"""Buying a stream: refused before the charge or begun by it, under a name of the analyst's own, and ended for good."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from hubbub.analyses.streams import folders, purchase
from hubbub.analyses.streams import state as states
from hubbub.analyses.streams.folders import folder_of_analyst
from hubbub.analyses.streams.stream import open_stream
from hubbub.config import load
from hubbub.curator import Curator
from hubbub.curator.opening import open_curator
from hubbub.curator.session import Session, open_session
from hubbub.errors import HubbubError, LedgerError, QueryError, RunError, StreamError
from hubbub.noise.source import system

YAML = """
version: 1
datasets:
  visitors:
    source: visitors.csv
    unit: {column: id}
    columns: {id: {type: integer}}
    budget: {epsilon: 100}
  clicks:
    source: visitors.csv
    unit: row
    columns: {id: {type: integer}}
    budget: {epsilon: 100}
analysts:
  ana: {visitors: {epsilon: 50}, clicks: {epsilon: 50}}
  ben: {visitors: {epsilon: 50}}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "hubbub.yaml").write_text(YAML)
    (tmp_path / "visitors.csv").write_text("id\n1\n2\n")
    return tmp_path


@pytest.fixture
def curator(place: Path) -> Iterator[Curator]:
    with open_curator(load(place / "hubbub.yaml")) as made:
        yield made


@pytest.fixture
def ana(curator: Curator) -> Session:
    return Session(curator, "ana")


def home(place: Path, analyst: str = "ana") -> Path:
    return folder_of_analyst(place / "hubbub-streams", analyst)


def spent(session: Session) -> Fraction:
    return sum(
        (cap.spent or Fraction(0) for each in session.budget() for cap in each.caps if cap.scope == "analyst"),
        Fraction(0),
    )


def density(session: Session, name: str = "seen", **said: Any) -> Any:
    return session.stream("visitors", name, kind="density", **{"universe": (0, 99), "epsilon": 1, **said})


def test_two_analysts_have_streams_of_one_name(place: Path, curator: Curator, ana: Session) -> None:
    ben = Session(curator, "ben")
    density(ana)
    density(ben, universe=(0, 9))
    root = place / "hubbub-streams"
    assert [(each.name, each.analyst) for each in folders.all_streams(root)] == [("seen", "ana"), ("seen", "ben")]
    with open_stream(home(place), "seen") as mine, open_stream(home(place, "ben"), "seen") as other:
        assert (mine.terms.universe, other.terms.universe) == ((0, 99), (0, 9))


def _taken(place: Path, ana: Session, patch: pytest.MonkeyPatch) -> None:
    density(ana)


def _limit(place: Path, ana: Session, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(folders, "MAX_STREAMS", 2)
    density(ana, "one")
    density(ana, "two")


def _file(place: Path, ana: Session, patch: pytest.MonkeyPatch) -> None:
    (place / "hubbub-streams").write_text("in the way")


def _full(place: Path, ana: Session, patch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    patch.setattr(states.os, "fsync", full)  # type: ignore[attr-defined]


@pytest.mark.parametrize("obstacle", [_taken, _limit, _file, _full])
def test_a_purchase_that_cannot_begin_is_refused_before_the_charge(
    place: Path, ana: Session, obstacle: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is taken, there are too many, the folder cannot be made, the disk is full: nothing is charged."""
    with monkeypatch.context() as patch:
        obstacle(place, ana, patch)
        before, charges = spent(ana), len(ana.releases())
        with pytest.raises(StreamError):
            density(ana, universe=(0, 50))
    assert (spent(ana), len(ana.releases())) == (before, charges)
    assert not (home(place) / "seen.bought").exists()


@pytest.mark.parametrize("said", [{"universe": (9, 0)}, {"outputs": 0}, {"epsilon": 51}, {"name": "no/name"}])
def test_bad_terms_and_no_budget_leave_nothing_behind(place: Path, ana: Session, said: dict[str, Any]) -> None:
    with pytest.raises(HubbubError):
        density(ana, **said)
    assert spent(ana) == 0
    assert not list((place / "hubbub-streams").rglob("*.bought"))
    density(ana)


def test_a_count_is_refused_where_the_number_of_arrivals_is_not_public(place: Path, ana: Session) -> None:
    """At any ε a count shows how many arrivals there were; estimate and query refuse it alike."""
    said: dict[str, Any] = {"kind": "count", "horizon": 100, "epsilon": "0.000001"}
    for ask in (ana.stream, ana.estimates.stream):
        with pytest.raises(StreamError, match=r"HB664.*not public"):
            ask("clicks", "visits", **said)
    assert spent(ana) == 0
    (place / "hubbub.yaml").write_text(YAML.replace("unit: row\n", "unit: row\n    arrivals: public\n"))
    with open_session(place / "hubbub.yaml", analyst="ana") as again:
        said["epsilon"] = 1
        bought = again.stream("clicks", "visits", **said)
        assert any("the number of arrivals is public" in line for line in bought.receipt["derivation"])


@pytest.mark.parametrize("step", ["begin", "record", "ledger"])
def test_a_charge_whose_stream_did_not_begin_is_used_by_the_same_purchase(
    place: Path, ana: Session, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after the charge, and the data changed since: the same purchase begins it and is not charged again."""
    curator = ana._curator
    with monkeypatch.context() as patch:
        if step == "begin":
            patch.setattr(purchase, "begin", lambda *_, **__: 1 / 0)
        elif step == "record":
            patch.setattr(curator.ledger, "record", lambda *_: 1 / 0)
        else:
            charge_all = curator.ledger.charge_all

            def lost(requests: Any) -> Any:
                charge_all(requests)
                raise LedgerError("HB310", "the answer of the ledger was lost.", "")

            patch.setattr(curator.ledger, "charge_all", lost)
        with pytest.raises((ZeroDivisionError, RunError, LedgerError)):
            density(ana)
    assert (home(place) / "seen.bought").exists()
    before = spent(ana)
    assert before > 0
    with pytest.raises(StreamError, match="HB660"):
        density(ana, universe=(0, 7))  # another one of that name has to wait
    if step == "begin":
        (place / "visitors.csv").write_text("id\n1\n2\n3\n")
    density(ana)
    assert spent(ana) == before
    assert not (home(place) / "seen.bought").exists()
    with open_stream(home(place), "seen") as stream:
        stream.feed(["1"], feeder="f", source=system())


def test_a_purchase_that_was_interrupted_can_be_dropped(place: Path, ana: Session, monkeypatch: Any) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(purchase, "begin", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            density(ana)
    purchase.end(place / "hubbub-streams", "ana", "seen")
    before = spent(ana)
    density(ana, universe=(0, 7))
    assert spent(ana) > before


def test_two_purchases_at_once_share_no_name_and_pass_no_limit(
    place: Path, curator: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight threads buy streams of three names, in different terms, where two may be had."""
    monkeypatch.setattr(folders, "MAX_STREAMS", 2)
    session = Session(curator, "ana")
    start, refused = threading.Barrier(8), list[str]()

    def buy(number: int) -> None:
        start.wait()
        try:
            density(session, f"s{number % 3}", universe=(0, 10 + number))
        except StreamError as error:
            refused.append(error.code)

    threads = [threading.Thread(target=buy, args=(number,)) for number in range(8)]
    with ExitStack() as stack:
        for thread in threads:
            thread.start()
            stack.callback(thread.join)
    made = folders.streams_of_analyst(place / "hubbub-streams", "ana")
    assert len(made) == len({each.name for each in made}) == 2
    assert len(refused) == 6
    assert set(refused) <= {"HB531", "HB661"}
    assert len(session.releases()) == 2, "every charge has its stream"


def test_an_ended_stream_is_erased_and_its_charge_begins_no_other(place: Path, ana: Session) -> None:
    bought = density(ana)
    path = home(place) / "seen.stream"
    other = path.with_name("kept")
    os.link(path, other)  # whoever still has the file open
    size = other.stat().st_size
    purchase.end(place / "hubbub-streams", "ana", "seen")
    assert not path.exists()
    assert other.read_bytes() == bytes(size)
    ledger = place / "ledger"
    with pytest.raises(StreamError, match="HB532"):
        purchase.begin_paid(place / "hubbub-streams", _ledger(ana), bought, analyst="ana", source=system())
    with pytest.raises(StreamError, match="HB531"):
        purchase.end(place / "hubbub-streams", "ana", "seen")
    before = spent(ana)
    density(ana)
    assert spent(ana) == 2 * before, "the same name once more is another stream, at its price"
    assert not ledger.exists()


def _ledger(session: Session) -> Path:
    from hubbub.curator.opening import folder_of

    return folder_of(session._curator.config)


def test_streams_of_before_are_found_by_their_analyst(place: Path, ana: Session) -> None:
    """States lay in one folder; their names belong to whom they were paid by."""
    density(ana)
    (home(place) / "seen.stream").rename(place / "hubbub-streams" / "seen.stream")
    root = place / "hubbub-streams"
    assert folders.find_stream(root, "ana", "seen") is not None
    assert folders.find_stream(root, "ben", "seen") is None
    assert density(ana).replayed
    with pytest.raises(StreamError, match="HB531"):
        density(ana, universe=(0, 5))
    density(Session(ana._curator, "ben"))
    purchase.end(root, "ana", "seen")
    assert [each.analyst for each in folders.all_streams(root)] == ["ben"]


def test_a_density_of_before_under_replace_is_read_and_no_longer_used(place: Path, ana: Session) -> None:
    density(ana, universe=(0, 9))
    path = home(place) / "seen.stream"
    stored = states.load(path)
    form = {k: v for k, v in stored.facts["terms"].items() if k != "edition"} | {"relation": "replace"}
    told = [{"arrivals": 17, "ones": 4}]
    facts = {**stored.facts, "terms": form, "told": told, "arrivals": 17, "feeders": {"f": 17}}
    states.save(path, states.StoredState(facts, stored.arrays))
    with open_stream(home(place), "seen") as stream:
        assert len(stream.values()) == 1
        assert "17" not in str(stream.to_json()["told"])
        assert stream.to_json()["arrivals"] is None
        for use in (lambda: stream.feed(["1"], feeder="f", source=system()), lambda: stream.draw_answer(system())):
            with pytest.raises(StreamError, match="HB666"):
                use()


def test_a_state_of_before_forgets_its_counts_with_the_next_arrival(place: Path, ana: Session) -> None:
    density(ana)
    path = home(place) / "seen.stream"
    stored = states.load(path)
    facts = {**stored.facts, "told": [{"arrivals": 17, "ones": 4}], "arrivals": 17, "feeders": {"f": 17}}
    states.save(path, states.StoredState(facts, stored.arrays))
    with open_stream(home(place), "seen") as stream:
        stream.feed(["1"], feeder="f", before=17, source=system())
    kept = states.load(path).facts
    assert (kept["arrivals"], kept["feeders"], kept["told"]) == (0, {}, [{"ones": 4}])


def test_a_damaged_state_hides_no_other_and_can_be_ended(place: Path, ana: Session) -> None:
    root = place / "hubbub-streams"
    density(ana, "good")
    density(ana, "bad")
    (home(place) / "bad.stream").write_bytes(b"no state")
    assert [each.name for each in folders.all_streams(root)] == ["good"]
    before = spent(ana)
    with pytest.raises(StreamError, match="HB532"):
        density(ana, "bad")
    assert spent(ana) == before
    purchase.end(root, "ana", "bad")
    assert not (home(place) / "bad.stream").exists()


def test_refusals_before_a_charge_alone_say_that_nothing_was_charged() -> None:
    assert "Nothing was run or charged" in str(QueryError("HB530", "no.", ""))
    assert "charged" not in str(states.damaged())
    assert "charged" not in str(purchase.name_taken("seen"))
