"""A stream of a declared dataset: charged once, begun once, whatever is killed or lost."""

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.analyses.streams import state as states
from hubbub.analyses.streams.folders import folder_of_analyst
from hubbub.analyses.streams.purchase import begin_paid, begun_charges
from hubbub.analyses.streams.stream import Stream, open_stream
from hubbub.answers.release import Release
from hubbub.audit.receipt import check_receipt
from hubbub.cli import main
from hubbub.config import load
from hubbub.curator.opening import folder_of
from hubbub.curator.session import Session, open_session
from hubbub.errors import BudgetError, HubbubError, StreamError
from hubbub.noise.source import system

YAML = """
version: 1
datasets:
  clicks:
    source: clicks.csv
    unit: row
    arrivals: public
    columns: {page: {values: [a, b]}}
    budget: {epsilon: 3, delta: 1e-6}
  visitors:
    source: visitors.csv
    unit: {column: id}
    columns: {id: {type: integer}}
    budget: {epsilon: 3}
analysts:
  ana: {clicks: {epsilon: 2}, visitors: {epsilon: 2}}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "hubbub.yaml").write_text(YAML)
    (tmp_path / "clicks.csv").write_text("page\na\nb\n")
    (tmp_path / "visitors.csv").write_text("id\n1\n2\n")
    return tmp_path


@pytest.fixture
def ana(place: Path) -> Iterator[Session]:
    with open_session(place / "hubbub.yaml", analyst="ana") as session:
        yield session


def spent(ana: Session, dataset: str) -> Fraction:
    (found,) = [each for each in ana.budget() if each.dataset == dataset]
    return max(cap.spent or Fraction(0) for cap in found.caps if cap.scope == "analyst")


def begun(place: Path, release: Release) -> Stream:
    ledger = folder_of(load(place / "hubbub.yaml"))
    return begin_paid(place / "hubbub-streams", ledger, release, analyst="ana", source=system())


def home(place: Path) -> Path:
    return folder_of_analyst(place / "hubbub-streams", "ana")


def test_a_stream_is_charged_once_for_all_that_it_says(place: Path, ana: Session) -> None:
    bought = ana.stream("visitors", "seen", kind="density", universe=(0, 999), outputs=2, epsilon="1.5")
    assert spent(ana, "visitors") <= Fraction(3, 2)
    assert spent(ana, "visitors") > Fraction(14, 10)
    assert check_receipt(bought.document()).sound
    before = spent(ana, "visitors")
    with open_stream(home(place), "seen") as stream:
        stream.feed(["1", "2", "3"], feeder="f", source=system())
        stream.draw_answer(system())
        stream.draw_answer(system())
        assert stream.paid == {
            "analyst": "ana",
            "dataset": "visitors",
            "charge": bought.receipt["ledger"][0]["sequence"],
        }
    assert spent(ana, "visitors") == before
    again = ana.stream("visitors", "seen", kind="density", universe=(0, 999), outputs=2, epsilon="1.5")
    assert again.replayed
    assert spent(ana, "visitors") == before
    with pytest.raises(BudgetError):
        ana.stream("visitors", "more", kind="density", universe=(0, 999), epsilon="1.5")


def test_a_count_with_delta_takes_the_square_root_and_passes_its_own_cap(ana: Session) -> None:
    bought = ana.stream("clicks", "pages", kind="count", horizon=1000, bins=["a", "b"], epsilon=1, delta="1e-7")
    assert bought.model["terms"]["method"] == "root"
    assert check_receipt(bought.document()).sound
    pure = ana.stream("clicks", "pure", kind="count", horizon=1000, epsilon="0.5", delta=0)
    assert pure.model["terms"]["method"] == "tree"
    estimate = ana.estimates.stream("clicks", "free", kind="count", window=64, epsilon="0.1")
    assert estimate.expected[0].plus_minus > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("kind => 'count', horizon => 10, table => 'visitors'", "privacy unit of visitors is id"),
        ("kind => 'density', universe => [0], table => 'visitors'", "universe"),
        ("kind => 'density', universe => 7, table => 'visitors'", "universe"),
        ("kind => 'density', universe => [0, 0.5], table => 'visitors'", "universe"),
        ("kind => 'count', horizon => 10, bins => [1], table => 'clicks'", "HB583"),
        ("kind => 'count', horizon => 10, private_state => 1, table => 'clicks'", "TRUE or FALSE"),
        ("kind => 'count', horizon => 'x', table => 'clicks'", "HB583"),
        ("kind => 'count', horizon => 10, name => 7, table => 'clicks'", "given twice|text"),
        ("kind => 5, table => 'clicks'", "HB583"),
        ("kind => 'count', horizon => 10, bins => [], table => 'clicks'", "bins must be a list of names"),
        ("kind => 'count', horizon => 10, method => ['tree'], table => 'clicks'", "HB583"),
        ("kind => 'count', window => 0, table => 'clicks'", "HB103"),
        ("kind => 'count', horizon => 10, bound => 0.5, table => 'clicks'", "HB583"),
        ("kind => 'density', universe => [0, 9], outputs => 0, table => 'visitors'", "HB103"),
        ("kind => ['density'], table => 'visitors'", "HB583"),
        ("kind => 'count', horizon => 10, table => 'nowhere'", "nowhere"),
    ],
)
def test_a_call_that_cannot_be_is_refused_free_of_charge(ana: Session, arguments: str, words: str) -> None:
    with pytest.raises(HubbubError, match=words):
        ana.query(f"CALL stream(name => 's', {arguments})", epsilon=1)
    assert spent(ana, "clicks") == spent(ana, "visitors") == 0


def test_a_lost_state_is_never_begun_again_on_an_old_charge(place: Path, ana: Session) -> None:
    bought = ana.stream("visitors", "seen", kind="density", universe=(0, 99), epsilon=1)
    first = begun(place, bought)
    assert begun(place, bought).identity == first.identity
    (home(place) / "seen.stream").unlink()
    with pytest.raises(StreamError, match="HB532") as refused:
        begun(place, bought)
    assert "charged" not in str(refused.value), "it was"
    assert not (home(place) / "seen.stream").exists()
    assert begun_charges(folder_of(load(place / "hubbub.yaml"))) == {first.identity: "seen"}


def test_a_stream_begins_once_for_its_charge_through_kills(
    place: Path, ana: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after the state was made and before the list was: the state that is there goes on, drawn once."""
    write = states.replace_text

    def killed(path: Path, text: str) -> None:
        if path.name == "streams.json":
            raise ZeroDivisionError
        write(path, text)

    with monkeypatch.context() as patch:
        patch.setattr(states, "replace_text", killed)
        with pytest.raises(ZeroDivisionError):
            ana.stream("visitors", "seen", kind="density", universe=(0, 99), epsilon=1)
    made = (home(place) / "seen.stream").read_bytes()
    before = spent(ana, "visitors")
    again = ana.stream("visitors", "seen", kind="density", universe=(0, 99), epsilon=1)
    assert again.replayed
    begun(place, again)
    assert (home(place) / "seen.stream").read_bytes() == made
    assert spent(ana, "visitors") == before


def test_two_charges_do_not_share_a_name(place: Path, ana: Session) -> None:
    ana.stream("visitors", "seen", kind="density", universe=(0, 99), epsilon="0.5")
    before = spent(ana, "visitors")
    with pytest.raises(StreamError, match="HB531"):
        ana.stream("visitors", "seen", kind="density", universe=(0, 98), epsilon="0.5")
    assert spent(ana, "visitors") == before
    assert len(ana.releases()) == 1


def test_the_command_charges_and_begins(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make = ["stream", "make", "pages", "--kind", "count", "--window", "64", "-e", "1", "--dataset", "clicks"]
    make += ["-c", str(place / "hubbub.yaml")]
    for words in ("Charged ε = ", "Already charged ε = "):
        assert main(make) == 0
        assert words in capsys.readouterr().out
    assert main(["budget", "--json", "-c", str(place / "hubbub.yaml")]) == 0
    assert json.loads(capsys.readouterr().out)
    assert (home(place) / "pages.stream").exists()
    config = ["-c", str(place / "hubbub.yaml")]
    assert main(["stream", "list", *config]) == 0
    assert capsys.readouterr().out == "pages  (ana, clicks)\n"
    assert main(["stream", "end", "pages", *config]) == 0
    assert "erased its state" in capsys.readouterr().out
    assert not (home(place) / "pages.stream").exists()
    assert main(["stream", "read", "pages", *config]) == 1
    assert main(["stream", "end", "pages", *config]) == 1
    assert main([*make, "--folder", str(place)]) == 1
