"""All screens: each is computed for the ends of its sliders, drawn, and refused for what it does not have."""

import json
import re
from fractions import Fraction
from xml.etree import ElementTree

import pytest

from hubbub.attacks.screens import SCREENS
from hubbub.errors import ParameterError
from hubbub.semantics.screens import figures, svg
from hubbub.semantics.screens.base import Control, ceiling, choice
from hubbub.semantics.screens.figures import Bars, Curves

#: Screens whose computation takes a while; one step of each slider is enough.
SLOW = {"smoking", "dalenius", "separation", "approximate", "local"}


@pytest.mark.parametrize("name", [name for name in SCREENS if name != "game"])  # its sliders depend on each other
def test_a_screen_is_computed_for_the_ends_of_its_sliders(name: str) -> None:
    screen = SCREENS[name]
    for control in screen.controls:
        assert control.kind == "text" or control.default in control.steps
        steps = (control.steps[0], control.steps[-1]) if control.steps else ()
        for step in steps[:1] if name in SLOW else steps:
            reading = screen.read({control.name: step})
            assert all(sentence.endswith(".") for sentence in reading.sentences)
            assert all(len(row) == len(reading.headings) for row in reading.rows)
    form = json.loads(json.dumps(screen.to_json({}, screen.read({}))))
    assert form["screen"] == name
    assert form["parameters"] == {control.name: control.default for control in screen.controls}


@pytest.mark.parametrize(
    "name", [name for name in SCREENS if name not in ("height", "smoking", "dalenius", "separation")]
)
def test_a_figure_has_a_text_alternative_and_no_style(name: str) -> None:
    figure = SCREENS[name].read({}).figure
    assert figure is not None
    for alone in (False, True):
        drawn = svg.draw(figure, alone=alone)
        root = ElementTree.fromstring(drawn)
        assert root.attrib["role"] == "img"
        assert figure.caption in root.attrib["aria-label"]
        assert "style" not in drawn
        for series, _ in figure.series:
            assert series in "".join(root.itertext())
    lines = figures.draw(figure)
    assert lines[0] == figure.caption
    assert max(map(len, lines)) < 110


def test_curves_are_drawn_where_they_are() -> None:
    figure = Curves("c", "x", "y", (("line", ((0.0, 0.0), (1.0, 1.0))), ("high", ((0.0, 3.0), (1.0, 3.0)))), at=0.5)
    drawn = svg.draw(figure)
    assert 'd="M0.000 100.000L100.000 0.000"' in drawn
    assert 'x1="50.000"' in drawn
    lines = figures.draw(figure)
    assert lines[2].endswith("●")
    assert lines[14].startswith("0 │●")
    assert not any("○" in line for line in lines[:15])  # above the top: left out, not drawn at the edge
    bars = figures.draw(Bars("b", ("one", "two"), (("s", (0.5, 1.0)),)))
    assert bars[1] == "one  s  " + "█" * 20 + " 50.0%"
    assert bars[2].count("█") == 40


def test_bars_are_as_tall_as_their_values() -> None:
    drawn = svg.draw(Bars("b", ("one", "two"), (("s", (0.5, 1.0)),)))
    assert re.findall(r'y="[\d.]+" width="[\d.]+%" height="([\d.]+)"', drawn) == ["95.0", "190.0"]


@pytest.mark.parametrize(
    ("name", "given", "code"),
    [
        ("beliefs", {"rate": "1"}, "HB692"),
        ("beliefs", {"epsilon": "nan"}, "HB102"),
        ("beliefs", {"epsilon": "0"}, "HB103"),
        ("beliefs", {"epsilon": "1e9"}, "HB103"),
        ("smoking", {"n": "10.5"}, "HB103"),
        ("indistinguishable", {"mechanism": "magic"}, "HB691"),
        ("game", {"prior": "x" * 201}, "HB691"),
        ("separation", {"n": "1,2,3,4,5"}, "HB691"),
    ],
)
def test_values_that_are_none_are_refused(name: str, given: dict[str, str], code: str) -> None:
    with pytest.raises(ParameterError) as caught:
        SCREENS[name].read(given)
    assert caught.value.code == code


def test_an_empty_field_means_the_default() -> None:
    assert SCREENS["beliefs"].read({"epsilon": " "}) == SCREENS["beliefs"].read({})
    assert choice("a", "A", "b", "c").read(" c ") == "c"
    assert Control("a", "A", "b", "text").read("x") == "x"


def test_a_bound_is_never_rounded_down() -> None:
    for value in (Fraction(1, 3), Fraction(2, 3), Fraction(10**9 + 1, 10**9), Fraction(1, 7 * 10**8)):
        assert value * (1 - Fraction(1, 10**19)) <= Fraction(ceiling(value)) <= value * Fraction(1002, 1000)
