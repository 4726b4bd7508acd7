"""A stream at work: terms, arrivals, windows, answers, the file and the command."""

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.accounting.cost import privacy_cost
from hubbub.analyses.streams import state as states
from hubbub.analyses.streams.stream import MAX_LINES, create_stream, open_stream
from hubbub.analyses.streams.terms import Terms
from hubbub.cli import main
from hubbub.core.unit import Relation
from hubbub.errors import HubbubError
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import RandomSource, system

ONE, SMALL = Fraction(1), Fraction(1, 10**6)


def count(**given: Any) -> Terms:
    return Terms(**{"name": "s", "kind": "count", "epsilon": ONE, **given})


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "density"},
        {"kind": "density", "universe": (5, 1)},
        {"kind": "density", "universe": (0, 9), "bound": 2},
        {"kind": "density", "universe": (0, 2**40)},
        {"kind": "sum"},
        {"horizon": 0},
        {"horizon": 5, "window": 50},
        {},
        {"window": 3},
        {"horizon": 9, "bins": ("a", "a")},
        {"horizon": 9, "bins": ()},
        {"horizon": 9, "bins": ("", "a")},
        {"horizon": 9, "bins": (" a", "b")},
        {"horizon": 9, "bins": ("a", "b"), "bound": 2},
        {"horizon": 2**22, "bins": ("a", "b")},
        {"horizon": 9, "method": "root"},
        {"horizon": 9, "method": "leaf"},
        {"horizon": 9, "method": "root", "delta": SMALL, "private_state": True},
        {"horizon": 9, "name": "../up"},
        {"horizon": 9, "epsilon": Fraction(0)},
        {"horizon": 9, "delta": Fraction(2)},
        {"horizon": 9, "outputs": 2},
    ],
)
def test_terms_that_cannot_be_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(HubbubError) as refusal:
        count(**given)
    assert refusal.value.remedy


@pytest.mark.parametrize(
    ("given", "sensitivity"),
    [
        ({"horizon": 1023}, 10),
        ({"horizon": 1024}, 11),
        ({"window": 64}, 7),
        ({"horizon": 7, "bound": 5}, 15),
        ({"horizon": 7, "bins": ("a", "b")}, 3),
        ({"horizon": 7, "bins": ("a", "b"), "relation": Relation.REPLACE}, 6),
        ({"horizon": 7, "bound": 5, "relation": Relation.REPLACE}, 15),
    ],
)
def test_noise_is_calibrated_to_what_one_arrival_moves(given: dict[str, Any], sensitivity: int) -> None:
    terms = count(**given)
    assert terms.counter.noise == Laplace.from_epsilon(sensitivity=sensitivity, epsilon=1)
    assert privacy_cost(terms.event).pure == 1
    gaussian = count(**given, delta=SMALL).counter.noise
    assert isinstance(gaussian, Gaussian)
    # in the Euclidean norm a replaced arrival moves each block of two bins by √2, and a bound counts squared
    levels = (given.get("window") or given["horizon"]).bit_length()
    moved = 2 if given.get("bins") and given.get("relation") is Relation.REPLACE else 1
    assert gaussian.sensitivity_squared == levels * given.get("bound", 1) ** 2 * moved


def test_terms_survive_the_file() -> None:
    for terms in (
        count(horizon=9, bins=("ä", "b")),
        count(window=64, delta=SMALL, method="root"),
        Terms(name="d", kind="density", epsilon=ONE, universe=(-5, 5), outputs=3),
    ):
        assert Terms.read(json.loads(json.dumps(terms.to_json()))) == terms


def test_whatever_a_line_says_it_is_an_arrival() -> None:
    """Lines that mean nothing are arrivals of nothing: no error depends on data."""
    lines = ["7", " 3 ", "x", "", "-5", "9" * 30, "1.5", "٣", "2"]
    assert count(horizon=9, bound=5).parse_lines(lines)[:, 0].tolist() == [5, 3, 0, 0, 0, 0, 0, 0, 2]
    density = Terms(name="d", kind="density", epsilon=ONE, universe=(-5, 5))
    assert density.parse_lines(lines).tolist() == [-1, 8, -1, -1, 0, -1, -1, -1, 7]
    bins = count(horizon=9, bins=("x", "2", "zz"))
    assert bins.parse_lines(lines).sum(axis=1).tolist() == [0, 0, 1, 0, 0, 0, 0, 0, 1]
    assert bins.parse_lines(["zz"]).tolist() == [[0, 0, 1]]


@pytest.mark.parametrize("method", ["tree", "root"])
@pytest.mark.parametrize("batch", [1, 7, 200])
def test_a_window_is_answered_from_two_blocks(tmp_path: Path, method: str, batch: int) -> None:
    """At ε = 10⁵ the noise rounds away, and every answer is the count of the last 16 arrivals, for 100 arrivals."""
    terms = count(window=16, epsilon=Fraction(10**5), delta=SMALL, method=method)
    bits = np.random.default_rng(4).integers(0, 2, 100)
    with create_stream(tmp_path, terms, system()) as stream:
        for start in range(0, 100, batch):
            stream.feed([str(bit) for bit in bits[start : start + batch]], feeder="f", source=system())
            done = min(start + batch, 100)
            (answer,) = stream.values()
            assert answer.value == pytest.approx(bits[max(0, done - 16) : done].sum(), abs=0.5)
        assert "previous" in stream._stored.arrays
        assert max(len(each) for each in stream._stored.arrays.values()) <= 16


@pytest.mark.parametrize(
    "given",
    [
        {"horizon": 600},
        {"horizon": 600, "private_state": True},
        {"horizon": 600, "delta": SMALL, "method": "root"},
        {"window": 64},
        {"window": 64, "delta": SMALL, "method": "root"},
    ],
)
def test_intervals_hold_the_truth_as_often_as_they_say(
    given: dict[str, Any], tmp_path: Path, seeded: Callable[[int], RandomSource]
) -> None:
    """1,500 bins side by side hold the truth in at least 95% − 3 points (5 standard errors), at two moments."""
    names = tuple(map(str, range(1500)))
    terms, source = count(bins=names, **given), seeded(9)
    with create_stream(tmp_path, terms, source) as stream:
        for moment in (95, 511):
            stream.feed(["none"] * (moment - (stream.arrivals or 0)), feeder="f", source=source)
            held = np.mean([each.low <= 0 <= each.high for each in stream.values()])
            assert 0.92 <= held <= 0.99


def test_a_density_says_as_many_answers_as_were_paid_for(tmp_path: Path, seeded: Callable[[int], RandomSource]) -> None:
    terms = Terms(name="d", kind="density", epsilon=Fraction(2), universe=(0, 9999), outputs=2)
    with create_stream(tmp_path, terms, seeded(1)) as stream:
        assert stream.values() == ()
        stream.feed(list(map(str, range(5000))), feeder="f", source=seeded(2))
        for left in (1, 0):
            stream.draw_answer(seeded(3))
            assert stream.to_json()["answers_left"] == left
        (answer,) = stream.values()
        assert answer.value == pytest.approx(0.5, abs=5 * terms.density.deviation(Fraction(1, 2)))
        with pytest.raises(HubbubError, match="HB534"):
            stream.draw_answer(seeded(4))
    with open_stream(tmp_path, "d") as again:
        assert again.values() == (answer,)


def test_intervals_of_a_density_hold_the_truth_as_often_as_they_say(
    tmp_path: Path, seeded: Callable[[int], RandomSource]
) -> None:
    """400 streams at a density of .4 hold it in at least 95% − 5 points (5 standard errors), fixed words."""
    terms, source = Terms(name="d", kind="density", epsilon=ONE, universe=(0, 999)), seeded(12)
    table, half = terms.density, 2.12
    held = 0
    for _ in range(400):
        found = table.estimate(table.noisy_count(table.take(table.start(source), np.arange(400), source), source))
        wide = half * table.deviation(Fraction(found).limit_denominator(10**6))
        held += abs(found - 0.4) <= wide
    assert 0.90 <= held / 400 <= 0.995


def test_lines_that_come_again_are_passed_over_and_gaps_are_refused(tmp_path: Path) -> None:
    with create_stream(tmp_path, count(horizon=10), system()) as stream:
        assert stream.feed(["1", "1", "1"], feeder="a", before=0, source=system()) == 3
        assert stream.feed(["1", "1", "1", "1"], feeder="a", before=0, source=system()) == 1
        assert stream.feed(["1"], feeder="b", before=0, source=system()) == 1
        with pytest.raises(HubbubError, match="HB533"):
            stream.feed(["1"], feeder="a", before=9, source=system())
        with pytest.raises(HubbubError, match="5 more"):
            stream.feed(["1"] * 6, feeder="a", source=system())
        with pytest.raises(HubbubError, match="HB533"):
            stream.feed(["1"] * (MAX_LINES + 1), feeder="a", source=system())
        assert stream.arrivals == 5


def test_a_state_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    with create_stream(tmp_path, count(horizon=10), system()):
        pass
    path = tmp_path / "s.stream"
    whole = path.read_bytes()
    for broken in (whole[:-1], b"", whole[:50] + b"!" + whole[51:], whole + b"x"):
        path.write_bytes(broken)
        with pytest.raises(HubbubError, match="HB532"), open_stream(tmp_path, "s"):
            pass
    path.unlink()
    with pytest.raises(HubbubError, match="HB531"), open_stream(tmp_path, "s"):
        pass
    assert not list(tmp_path.glob("*.new"))


def test_the_file_is_the_owners_alone(tmp_path: Path) -> None:
    with create_stream(tmp_path / "new", count(horizon=10), system()):
        pass
    assert (tmp_path / "new" / "s.stream").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    with create_stream(tmp_path, count(horizon=10), system()):
        pass
    with pytest.raises(HubbubError, match="HB531"), create_stream(tmp_path, count(horizon=10), system()):
        pass


def test_the_commands_make_feed_and_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--folder", str(tmp_path / "streams")]
    made_ = ["stream", "make", "clicks", "--kind", "count", "-e", "1", "--horizon", "100", "--bin", "x", "--bin", "y"]
    assert main([*made_, *place]) == 0
    assert "nothing was charged" in capsys.readouterr().out
    log = tmp_path / "log.txt"
    log.write_text("x\ny\nx\nunfinished")
    assert main(["stream", "feed", "clicks", "--tail", str(log), *place]) == 0
    assert "3 events read" in capsys.readouterr().out
    log.write_text("x\ny\nx\nunfinished\nx\n")
    assert main(["stream", "feed", "clicks", "--tail", str(log), *place]) == 0
    assert "2 events read, 3 lines skipped" in capsys.readouterr().out
    assert main(["stream", "read", "clicks", "--json", *place]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["arrivals"], [each["name"] for each in found["values"]]) == (5, ["x", "y"])
    assert main(["stream", "read", "clicks", "--all", *place]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "arrival,x,y"
    assert main(["stream", "list", *place]) == 0
    assert capsys.readouterr().out == "clicks\n"
    log.write_text("x\n")
    assert main(["stream", "feed", "clicks", "--tail", str(log), *place]) == 1
    assert "HB533" in capsys.readouterr().err
    density = ["stream", "make", "ids", "--kind", "density", "-e", "1", "--universe", "0:99"]
    assert main([*density, *place]) == 0
    assert main(["stream", "answer", "ids", "--json", *place]) == 0
    assert main(["stream", "answer", "ids", *place]) == 1
    assert main(["stream", "make", "ids2", "--kind", "density", "-e", "1", "--universe", "many", *place]) == 1


def test_the_stored_state_holds_no_line_that_arrived(tmp_path: Path) -> None:
    """Of a density and of a private tree: the canary is nowhere in the folder, the facts hold counts alone."""
    terms = (count(horizon=50, private_state=True), Terms(name="d", kind="density", epsilon=ONE, universe=(0, 10**6)))
    for each in terms:
        with create_stream(tmp_path, each, system()) as stream:
            stream.feed(["743100", "CANARY"] * 5, feeder="f", source=system())
        stored = states.load(states.path_of(tmp_path, each.name))
        # of a density not even how many there were
        counts = each.kind == "count"
        assert stored.facts["feeders"] == ({"f": 10} if counts else {})
        assert stored.facts["arrivals"] == (10 if counts else 0)
        assert "arrived" not in stored.arrays
        content = states.path_of(tmp_path, each.name).read_bytes()
        assert b"CANARY" not in content
        assert b"743100" not in content
    assert math.isfinite(terms[0].counter.deviation(0, 49))
