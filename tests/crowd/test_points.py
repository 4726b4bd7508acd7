"""Points from columns, and back."""

import numpy as np
import pytest

from hubbub.crowd.points import MAX_CATEGORIES, CategoryColumn, ScaledColumn, make_points
from hubbub.errors import CrowdError

COLUMNS = {
    "age": np.array([20, 40, 60, 99]),
    "cost": np.array([0.0, 50.0, np.nan, 200.0]),
    "smoker": np.array([True, False, True, True]),
    "name": np.array(["a", "b", "c", "d"], dtype=object),
}


def test_bounds_become_the_cube_and_what_lies_outside_its_border(rng: np.random.Generator) -> None:
    made = make_points(COLUMNS, ["age", "cost"], rng=rng, bounds={"age": (0, 80), "cost": (0, 100)})
    assert made.values.tolist() == [[-0.5, -1.0], [0.0, 0.0], [1.0, 1.0]]
    assert (made.kept.tolist(), made.left_out) == ([0, 1, 3], 1)
    back = made.columns(made.values)
    assert (back["age"].tolist(), back["cost"].tolist()) == ([20.0, 40.0, 80.0], [0.0, 50.0, 100.0])
    assert isinstance(made.axes[0], ScaledColumn)
    assert made.axes[0].plain(np.array([[0.5]])).tolist() == [60.0]


def test_bounds_that_nobody_declared_come_from_the_data_and_are_marked(rng: np.random.Generator) -> None:
    made = make_points(COLUMNS, ["age", "smoker"], rng=rng)
    assert made.axes == (
        ScaledColumn("age", 20.0, 99.0, None, declared=False),
        ScaledColumn("smoker", 0.0, 1.0, None, declared=False),
    )
    assert made.values[[0, 3], 0].tolist() == [-1.0, 1.0]


def test_a_step_spreads_equal_values_and_is_rounded_back(rng: np.random.Generator) -> None:
    columns = {"age": np.full(1000, 30)}
    made = make_points(columns, ["age"], rng=rng, bounds={"age": (0, 100)}, steps={"age": 1})
    assert len(np.unique(made.values)) == 1000
    assert set(made.columns(made.values)["age"].tolist()) == {30.0}
    ends = make_points({"age": np.array([0, 100])}, ["age"], rng=rng, steps={"age": 1})
    assert (np.abs(ends.values) <= 1).all()
    assert ends.columns(ends.values)["age"].tolist() == [0.0, 100.0]


@pytest.mark.parametrize(
    ("names", "more", "code"),
    [
        ([], {}, "HB620"),
        (["age", "age"], {}, "HB620"),
        (["height"], {}, "HB620"),
        (["name"], {"bounds": {"name": (0, 1)}}, "HB620"),
        (["age"], {"categories": {"age": ("a", "b")}}, "HB622"),
        (["age"], {"categories": {"age": ("20", "40")}, "steps": {"age": 1}}, "HB620"),
        (["name"], {"categories": {"name": ("a",)}}, "HB686"),
        (["name"], {"categories": {"name": ("a", "a")}}, "HB686"),
        (["age"], {"bounds": {"cost": (0, 1)}}, "HB620"),
        (["age"], {"bounds": {"age": (1, 1)}}, "HB621"),
        (["age"], {"bounds": {"age": (0, float("nan"))}}, "HB621"),
        (["age"], {"steps": {"age": 0}}, "HB621"),
        (["age"], {"steps": {"age": 1000}}, "HB621"),
    ],
)
def test_what_cannot_be_scaled_is_refused(
    rng: np.random.Generator, names: list[str], more: dict[str, dict[str, tuple[float, float]]], code: str
) -> None:
    with pytest.raises(CrowdError, match=code):
        make_points(COLUMNS, names, rng=rng, **more)  # type: ignore[arg-type]


def test_no_numbers_and_equal_numbers_are_refused(rng: np.random.Generator) -> None:
    with pytest.raises(CrowdError, match="HB622"):
        make_points({"a": np.array([np.nan, np.inf])}, ["a"], rng=rng)
    with pytest.raises(CrowdError, match="HB621"):
        make_points({"a": np.array([3, 3])}, ["a"], rng=rng)


@pytest.mark.row(105)
def test_categories_are_as_far_apart_as_the_bounds_of_a_number(rng: np.random.Generator) -> None:
    """Any two categories are at distance 2, and the nearest corner of any point is that of its largest coordinate."""
    texts = np.array(["north", "south", "east", ""], dtype=object)
    made = make_points({"ward": texts, "x": np.arange(4.0)}, ["ward", "x"], rng=rng)
    assert made.axes[0] == CategoryColumn("ward", ("east", "north", "south"), declared=False)
    assert (made.values.shape, made.left_out) == ((3, 4), 1)
    corners = made.values[:, :3]
    for i in range(3):
        for j in range(i):
            assert np.linalg.norm(corners[i] - corners[j]) == pytest.approx(2)
    assert np.linalg.norm(made.values[0, 3:] - made.values[2, 3:]) == pytest.approx(2)
    assert made.columns(made.values)["ward"].tolist() == ["north", "south", "east"]
    anywhere = rng.normal(0, 2, (500, 3))
    axis = made.axes[0]
    all_corners = axis.coordinates(np.array(axis.values, dtype=object))
    nearest = np.linalg.norm(anywhere[:, None] - all_corners, axis=2).argmin(axis=1)
    assert axis.published(anywhere).tolist() == [axis.values[k] for k in nearest]


@pytest.mark.row(105)
def test_undeclared_categories_are_skipped_and_too_many_are_refused(rng: np.random.Generator) -> None:
    texts = np.array(["a", "b", "c", "a"], dtype=object)
    made = make_points({"w": texts}, ["w"], rng=rng, categories={"w": ("a", "b")})
    assert (made.kept.tolist(), made.left_out) == ([0, 1, 3], 1)
    codes = make_points({"w": np.array([1, 2, 7])}, ["w"], rng=rng, categories={"w": ("1", "2")})
    assert (codes.columns(codes.values)["w"].tolist(), codes.left_out) == (["1", "2"], 1)
    many = np.array([f"v{n}" for n in range(MAX_CATEGORIES + 1)], dtype=object)
    with pytest.raises(CrowdError, match="HB686"):
        make_points({"w": many}, ["w"], rng=rng)
