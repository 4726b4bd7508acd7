"""The studies of the crowd sanitizers: each shows the figure of its construction. Seeds are fixed.

Where a figure is compared, the tolerance is at least six deviations of what was drawn, so that another seed would fail
with a chance below 1e-6, unless a test says otherwise.
"""

import json
import re
from typing import Any

import numpy as np
import pytest

from hubbub.crowd import adversaries, impossibility
from hubbub.crowd.disclaimers import NOT_PRIVATE
from hubbub.crowd.histogram import build_histogram
from hubbub.crowd.isolation import isolates_target
from hubbub.crowd.neighbors import NeighborIndex
from hubbub.crowd.studies.base import CrowdStudy
from hubbub.crowd.studies.catalogue import STUDIES, find_study
from hubbub.crowd.studies.tests import correlation_differs, means_differ
from hubbub.errors import CrowdError

#: Settings under which a study takes a fraction of a second.
FEW: dict[str, dict[str, object]] = {
    "isolation": {"values": "2,10", "n": 200, "databases": 1},
    "informed": {"values": "2", "trials": 10},
    "perfect": {"n": 100, "trials": 5},
    "smoothness": {"dimensions": "8,16", "trials": 400},
    "balls": {"dimensions": "2,10"},
    "attributes": {"known": "0,50,90", "n": 200, "targets": 200},
    "cubes": {"dimensions": "2,12", "n": 300, "databases": 2},
    "subspace": {"attributes": "1,12", "n": 150, "databases": 15, "tries": 20},
    "cross-training": {"dimensions": "10", "trials": 100},
    "clusters": {"dimensions": "2", "runs": 5},
    "mixtures": {"separations": "4,15", "d": 20, "n": 200, "runs": 1},
    "round": {"dimensions": "2,12", "n": 300, "databases": 2},
    "covariance": {"sizes": "200", "runs": 3},
    "tests": {"dimensions": "10", "n": 150, "trials": 60},
    "changes": {"releases": "1,32", "n": 100},
    "databases": {"databases": "1,32", "common": 60, "others": 60},
    "categories": {"crowds": "2,50", "n": 300},
}


def run(name: str, rng: np.random.Generator, **settings: object) -> CrowdStudy:
    return find_study(name).run(rng=rng, settings={**FEW[name], **settings})


def curve(study: CrowdStudy, name: str) -> list[float]:
    """The values of one curve of the first plot."""
    return [y for _, y, *_ in study.plots[0].series[name]]


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_has_a_table_a_plot_and_says_that_it_is_not_private(rng: np.random.Generator, name: str) -> None:
    heard: list[float] = []
    study = find_study(name).run(rng=rng, settings=FEW[name], progress=lambda share, _: heard.append(share))
    assert (study.study, heard[-1], heard) == (name, 1.0, sorted(heard))
    assert study.rows
    assert all(len(row) == len(study.columns) for row in study.rows)
    assert study.plots[0].svg().count("<circle") == sum(map(len, study.plots[0].series.values())) > 0
    form: dict[str, Any] = study.to_json()
    assert (form["differentially_private"], form["warning"]) == (False, NOT_PRIVATE)
    assert CrowdStudy.read(json.loads(json.dumps(form))).to_json() == form
    entry = STUDIES[name]
    assert len(entry.summary) < 90
    assert entry.about.splitlines()[0].endswith(".")


def test_an_unknown_study_names_the_nearest() -> None:
    with pytest.raises(CrowdError, match="Did you mean cubes") as refused:
        find_study("cube")
    assert refused.value.code == "HB684"


@pytest.mark.row(78)
def test_every_useful_release_unlocks_the_padded_row_and_nothing_else_does(rng: np.random.Generator) -> None:
    """The adversary isolates always and the simulator never. Without a pad, the planted error, both know the row."""
    study = run("perfect", rng)
    names = [row[0] for row in study.rows]
    assert names == ["histogram", "ball", "sphere", "gaussian", "cross-training", "nothing is published"]
    assert curve(study, "adversary, sees the release") == [1, 1, 1, 1, 1, 0]
    assert curve(study, "simulator, does not") == [0] * 6
    point = rng.uniform(-1, 1, 4)
    assert impossibility.unmask_point(impossibility.mask_point(point, np.ones(3)), np.ones(3)) == pytest.approx(point)


@pytest.mark.row(83)
def test_rough_data_is_isolated_in_every_dimension(rng: np.random.Generator) -> None:
    study = run("smoothness", rng)
    assert min(curve(study, "with the histogram")) > 0.35
    assert curve(study, "without it")[1] < 0.02


@pytest.mark.row(81, 82)
def test_the_shares_of_balls_are_bounded_by_exact_volumes(rng: np.random.Generator) -> None:
    """Inside of a cell the share is exactly 3^(−d); the stated bound may exceed it by its grid, and never be below."""
    study = run("balls", rng, beta=0.01)
    for row in study.rows:
        inside, exact = float(row[1]), 3.0 ** -int(row[0])
        assert exact * 0.999 <= inside <= exact * 1.1
    assert "1e-06 inside, below 0.0753 around" in study.words[0]


@pytest.mark.row(77, 85)
def test_balls_and_points_are_the_same_adversary_and_noise_is_as_long_as_the_crowd(rng: np.random.Generator) -> None:
    """All 500 agree. At d = 10 the ball moves a row by 10/12 of its squared radius: 200 rows, 6 deviations of 0.01."""
    assert "for 500 of 500 a ball wins" in run("balls", rng).words[3]
    lengths = re.findall(r"[\d.]+ on average|[\d.]+ for \w+", run("covariance", rng).words[1])
    ball, sphere, gaussian = (float(text.split()[0]) for text in lengths)
    assert ball == pytest.approx(10 / 12, abs=0.06)
    assert sphere == 1
    assert gaussian == pytest.approx(1, abs=0.2)


@pytest.mark.row(101)
def test_known_attributes_isolate_and_the_histogram_adds_to_them(rng: np.random.Generator) -> None:
    study = run("attributes", rng)
    told, blind = (curve(study, f"{name}, c = 2") for name in ("with the histogram", "without it"))
    assert max(told[0], blind[0]) < 0.05
    assert told[1] > blind[1] + 0.2
    assert told[2] > 0.9
    assert curve(study, "with the histogram, c = 4")[1] < told[1]


@pytest.mark.row(101)
def test_the_likeliest_cell_completes_what_is_known(rng: np.random.Generator) -> None:
    """With all coordinates known the guess is the person; else the fuller of two cells that fit, by hand."""
    by_hand = np.array([[-0.5, 0.5], [-0.6, 0.4], [-0.4, 0.6], [-0.5, -0.5], [0.5, 0.5], [0.5, -0.5]])
    halves = build_histogram(by_hand, t=2)
    assert adversaries.knowing_attributes(halves, by_hand[[3]], 1).tolist() == [[-0.5, 0.5]]
    points = rng.uniform(-1, 1, (300, 3))
    histogram = build_histogram(points, t=5)
    assert np.array_equal(adversaries.knowing_attributes(histogram, points[:20], 3), points[:20])
    guesses = adversaries.knowing_attributes(histogram, points[:100], 2)
    assert np.array_equal(guesses[:, :2], points[:100, :2])
    cells = histogram.locate(points[:100])
    own = np.abs(guesses[:, 2] - (cells.low[:, 2] + cells.side / 2)) < 1e-12
    assert 0.2 < own.mean() < 1  # some other cell fits, too, and is likelier
    assert isolates_target(NeighborIndex(points), points, points, c=4, t=5).all()
    elsewhere = points + np.array([5.0, 0, 0])
    assert not isolates_target(NeighborIndex(points), elsewhere, points, c=4, t=5).any()


@pytest.mark.row(102)
def test_mixtures_of_cubes_hide_rows_as_one_cube_does(rng: np.random.Generator) -> None:
    study = run("cubes", rng)
    for name in study.plots[0].series:
        low, high = curve(study, name)
        assert low > 0.3
        assert high < 0.05


@pytest.mark.row(92)
def test_few_attributes_isolate_without_phi_and_not_with_it(rng: np.random.Generator) -> None:
    """φ(1) = 2^12: with it nobody is isolated in one attribute; without it nearly everybody is."""
    study = run("subspace", rng, data="uniform")
    for release in ("histogram", "ball"):
        assert curve(study, f"{release}, chosen attributes, φ = 1")[0] > 0.8
        assert curve(study, f"{release}, chosen attributes, φ = 2^(d/k)")[0] == 0


@pytest.mark.row(92)
def test_the_adversary_who_picks_the_attributes_finds_the_lonely_row(rng: np.random.Generator) -> None:
    """One row is far from all others in one of six attributes; imagined databases show it, and it is picked."""
    points = rng.uniform(-0.1, 0.1, (200, 6))
    points[7, 4] = 0.9
    imagined = np.stack([points + rng.normal(0, 0.001, points.shape) for _ in range(20)])
    columns, guess = adversaries.best_projection(imagined, points, k=1, c=4, t=5, tries=3000, rng=rng)
    assert columns == [4]
    assert guess[0, 0] == 0.9


@pytest.mark.row(103)
def test_tests_of_means_keep_their_level_and_tests_of_correlation_do_not(rng: np.random.Generator) -> None:
    study = run("tests", rng)
    assert curve(study, "ball: means, no effect (level)")[0] < 0.25  # 5% of 60: 16 or more with a chance below 1e-7
    assert curve(study, "ball: correlation ½, true (level)")[0] > 0.4
    group = np.arange(200) < 100
    values = rng.standard_normal(200)
    assert means_differ(values + 2 * group, group)
    pair = rng.standard_normal((2000, 2))
    assert correlation_differs(pair, 0.5)


@pytest.mark.row(103)
def test_covariances_are_corrected_and_round_data_hide_as_cubes_do(rng: np.random.Generator) -> None:
    study = run("covariance", rng)
    for shape in ("ball", "sphere", "gaussian"):
        assert curve(study, f"{shape}, corrected")[0] < 0.8 * curve(study, f"{shape}, as published")[0]
    rounds = run("round", rng)
    for name in ("ball", "Gaussian", "cube"):
        low, high = curve(rounds, name)
        assert low > high
        assert high < 0.05


@pytest.mark.row(94)
def test_kept_positions_stop_averaging_only_while_nobody_leaves(rng: np.random.Generator) -> None:
    study = run("changes", rng)
    assert curve(study, "fresh noise")[1] > 0.8
    kept = curve(study, "positions kept")
    assert kept[0] == kept[1]
    assert curve(study, "kept, 5% replaced")[1] > kept[1] + 0.1


@pytest.mark.row(104)
def test_several_databases_of_the_same_people_isolate_them(rng: np.random.Generator) -> None:
    study = run("databases", rng)
    for name in study.plots[0].series:
        one, many = curve(study, name)
        assert one < 0.2 < 0.7 < many


@pytest.mark.row(105)
def test_categories_survive_in_crowds_that_agree(rng: np.random.Generator) -> None:
    study = run("categories", rng)
    for name in study.plots[0].series:
        near, far = curve(study, name)
        assert near > 0.95
        assert far < 0.9


@pytest.mark.row(86)
def test_the_study_of_clusters_stays_below_three(rng: np.random.Generator) -> None:
    study = run("clusters", rng)
    for shape in ("ball", "sphere"):
        assert 1 < curve(study, f"{shape}: widest cluster")[0] <= 3


@pytest.mark.row(89)
def test_a_mixture_is_learned_when_its_means_are_apart(rng: np.random.Generator) -> None:
    study = run("mixtures", rng)
    for name in study.plots[0].series:
        near, far = curve(study, name)
        assert (near, far) == (0, 1)
    assert "0.0455 > 0.0366" in study.words[2]
