"""Curves as SVG."""

import re
from xml.etree import ElementTree

from hubbub.answers.chart import lines

SERIES = {"centre & ball": [(2.0, 0.75, 0.7, 0.8), (5.0, 0.03, 0.02, 0.05)], "<itself>": [(2.0, 0.4, 0.3, 0.5)]}


def test_a_chart_is_one_well_formed_file_with_every_point_and_its_interval() -> None:
    drawn = lines(SERIES, title="Isolated", across="dimension", up="share")
    root = ElementTree.fromstring(drawn)
    titles = [each.text for each in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == [
        "Isolated: share against dimension",
        "centre & ball: 0.75 (0.7 to 0.8) at 2",
        "centre & ball: 0.03 (0.02 to 0.05) at 5",
        "<itself>: 0.4 (0.3 to 0.5) at 2",
    ]


def test_higher_is_higher_and_a_logarithmic_axis_is_one() -> None:
    drawn = lines(
        {"a": [(1.0, 0.1, 0.1, 0.1), (10.0, 0.9, 0.9, 0.9), (100.0, 0.5, 0.5, 0.5)]},
        title="t",
        across="x",
        up="y",
        logarithmic=True,
        ceiling=[(1.0, 1.0), (100.0, 1.0)],
    )
    places = [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', drawn)]
    assert places[1][1] < places[2][1] < places[0][1]
    assert abs((places[1][0] - places[0][0]) - (places[2][0] - places[1][0])) < 0.05
    assert "ceiling" in drawn


def test_a_chart_carries_no_script_and_no_address_but_the_name_of_svg() -> None:
    drawn = lines(SERIES, title="t", across="x", up="y")
    assert "<script" not in drawn
    assert drawn.count("http") == 1
    assert "style=" not in drawn  # pages forbid it
