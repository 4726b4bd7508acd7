"""k-means from a noisy histogram: what it draws, what neighbors move, and clusters that it finds."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fixtures.program_tables import World, affords, charged

from hubbub.analyses.programs import kmeans_grid
from hubbub.analyses.programs.clusters import clustered
from hubbub.analyses.programs.inputs import numbered_cells, program_input
from hubbub.analyses.programs.kmeans import KMeans, MomentsKMeans, kmeans
from hubbub.analyses.programs.kmeans_grid import MAX_CELLS, GridKMeans, HistogramGrid, start_of
from hubbub.analyses.programs.vectors import box, of_sums, totals
from hubbub.core.schema import PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.measures import RowCount, sensitivity

Floats = NDArray[np.float64]
#: Nine groups in a box of [-10, 10]², far from each other.
PLACES = np.array(list(product((-7.0, 0.0, 7.0), repeat=2)))


def nine(world: World, rows: int = 4_500, **how: object) -> Floats:
    draw = np.random.default_rng(5)
    values = PLACES[np.arange(rows) % 9] + draw.normal(0, 0.5, (rows, 2))
    made = {"who": np.arange(rows) // 2, "x": values[:, 0], "y": values[:, 1]}
    world.put("nine", made, bounds={"x": (-10, 10), "y": (-10, 10)}, **how)  # type: ignore[arg-type]
    return values


def square(sides: tuple[int, int] = (4, 6)) -> HistogramGrid:
    """Divide the box into 4 × 6 cells."""
    return HistogramGrid(np.zeros(2), np.eye(2), -np.ones(2), 2 / np.array(sides), np.array(sides))


@pytest.mark.parametrize("columns", [2, 6])
@pytest.mark.parametrize(
    ("relation", "unit"), [(Relation.ADD_REMOVE, None), (Relation.REPLACE, PrivacyUnit("who", 2, 2))]
)
def test_what_is_drawn_is_what_is_charged(
    world: World, columns: int, relation: Relation, unit: PrivacyUnit | None
) -> None:
    draw = np.random.default_rng(1)
    names = [f"c{j}" for j in range(columns)]
    table = {name: draw.normal(0, 0.3, 300) for name in names} | {"who": np.arange(300) // 2}
    world.put("wide", table, bounds=dict.fromkeys(names, (-1, 1)), unit=unit, relation=relation)
    prepared = kmeans(world.setting(1, "1e-6"), table="wide", columns=names, k=3)
    assert isinstance(prepared, GridKMeans)
    world.run(prepared, "kmeans")
    assert world.drawn == charged(prepared.event)
    assert len(world.asked) == (4 if columns == 2 else 5)
    assert affords(prepared)


def test_with_many_columns_the_start_is_from_moments(world: World) -> None:
    names = [f"c{j}" for j in range(11)]
    world.put("wide", {name: np.zeros(4) for name in names}, bounds=dict.fromkeys(names, (-1, 1)))
    assert isinstance(kmeans(world.setting(), table="wide", columns=names, k=2), MomentsKMeans)
    assert isinstance(kmeans(world.setting(), table="wide", columns=names, k=2, method="grid"), GridKMeans)


def test_the_engine_puts_each_row_into_its_cell(world: World) -> None:
    """Compared with NumPy; rows beyond the grid are in its outermost cells."""
    values = nine(world, 900)
    place = program_input(world.setting(), "nine", ["x", "y"])
    grid = HistogramGrid(
        np.array([0.1, 0.0]), np.eye(2), np.array([-0.5, -0.6]), np.array([0.2, 0.3]), np.array([5, 4])
    )
    rows, cell = grid.rows(place, box(place, ["x", "y"]))
    counts = place.integers(world, rows, numbered_cells(cell, range(20)), [RowCount()]).through(lambda sums: sums[0])
    at = np.floor((values / 10 - [0.1, 0.0] - [-0.5, -0.6]) / [0.2, 0.3]).clip(0, [4, 3]).astype(int)
    assert counts.tolist() == np.bincount(at[:, 0] * 4 + at[:, 1], minlength=20).tolist()


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("unit", [None, PrivacyUnit("who", groups=2, rows=1)])
def test_engine_sums_of_neighbors_are_within_the_sensitivities(
    world: World, relation: Relation, unit: PrivacyUnit | None
) -> None:
    nine(world, 60, unit=unit, relation=relation)
    place = program_input(world.setting(), "nine", ["x", "y"])
    shape = box(place, ["x", "y"])
    rows, cell = square().rows(place, shape)
    centres = PLACES[::3] / 10
    near, columns, number = kmeans_grid.differences(place, shape, centres, 0.4)
    counted = sensitivity(RowCount(), (place.contribution_bounds(MAX_CELLS),), relation)
    summed = of_sums(2, place.contribution_bounds(3), relation)

    def integers() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        histogram = place.integers(world, rows, numbered_cells(cell, range(24)), [RowCount()])
        sums = place.integers(world, near, numbered_cells(number, 3), totals(columns))
        return histogram.through(lambda found: found), sums.through(lambda found: found)

    before, furthest = integers(), 0
    for who in range(0, 30, 5):
        world.connection.execute("CREATE OR REPLACE TABLE kept AS SELECT * FROM nine")
        change = "DELETE FROM nine" if relation is Relation.ADD_REMOVE else "UPDATE nine SET x = -10, y = 10"
        world.connection.execute(f"{change} WHERE {'who' if unit else 'rowid'} = {who}")
        cells, sums = (np.abs(one - other) for one, other in zip(integers(), before, strict=True))
        world.connection.execute("CREATE OR REPLACE TABLE nine AS SELECT * FROM kept")
        assert cells.sum() <= counted.l1
        assert sums.sum() <= summed.l1
        assert int((sums**2).sum()) <= summed.l2_squared
        furthest = max(furthest, int(cells.sum()))
    assert furthest >= counted.l1 / 2


@pytest.mark.parametrize(("unit", "epsilon"), [(None, 1), (PrivacyUnit("who", groups=2, rows=2), 8)])
def test_separated_clusters_are_found(world: World, unit: PrivacyUnit | None, epsilon: int) -> None:
    """All nine, in each of three runs: a center that serves two groups makes the mean squared distance ten times 0.5.

    500 rows of a group against noise of less than 40 for all cells of a group: a false alarm is below 1e-6.
    """
    values = nine(world, unit=unit)
    for _ in range(3):
        prepared = kmeans(world.setting(epsilon), table="nine", columns=["x", "y"], k=9)
        model = KMeans.of(world.run(prepared, "kmeans")[1])
        assert -model.score(values) < 1.25 * 0.5


def test_noise_that_looks_like_rows_starts_no_center() -> None:
    """40 empty cells with noise of scale 1 and two groups of 200 rows; the largest noise is below ln(24) scales.

    A threshold of one deviation would keep three cells in twenty, and a center would go to one of them.
    """
    grid = square((6, 7))
    counts = np.resize([2.9, -1.0, 0.4, -2.0, 1.5, 2.0, -0.3], 42)
    counts[[0, 41]] = 200
    noise = Laplace.from_epsilon(sensitivity=1, epsilon=1)
    start = start_of(grid, counts, noise, 400, 2, 0.0, np.random.default_rng(3))
    corners = np.array([[-5 / 6, -6 / 7], [5 / 6, 6 / 7]])
    assert np.allclose(start.centres[start.centres[:, 0].argsort()], corners)


def test_thin_rows_are_seen_in_merged_cells() -> None:
    """Three rows in each cell of one half: no cell stands out of noise of scale 2, but four together do."""
    grid = square((16, 16))
    counts = np.zeros((16, 16))
    counts[:8] = 3.0
    noise = Laplace.from_epsilon(sensitivity=1, epsilon="0.5")
    start = start_of(grid, counts.ravel(), noise, 384, 1, 0.0, np.random.default_rng(3))
    assert np.allclose(start.centres[0], [-0.5, 0.0], atol=0.13)


def test_nothing_to_see_gives_centers_all_the_same(world: World) -> None:
    world.put("none", {"x": np.zeros(0), "y": np.zeros(0)}, bounds={"x": (0, 1), "y": (0, 1)})
    model = KMeans.of(world.run(kmeans(world.setting("0.01"), table="none", columns=["x", "y"], k=5), "kmeans")[1])
    assert model.cluster_centers.shape == (5, 2)
    assert np.isfinite(model.cluster_centers).all()


def test_weights_are_what_points_are_repeated() -> None:
    """Points repeated three times and points of weight 3 have the same centers."""
    draw = np.random.default_rng(0)
    points = np.concatenate([draw.normal(place, 0.1, (5, 2)) for place in (-1.0, 0.0, 1.0)])
    once = clustered(points, 3, np.random.default_rng(1), weights=np.full(15, 3.0), starts=5)
    thrice = clustered(np.repeat(points, 3, axis=0), 3, np.random.default_rng(1), starts=5)
    assert np.allclose(np.sort(once, axis=0), np.sort(thrice, axis=0))


def test_distances_are_in_units_of_the_declared_ranges(world: World) -> None:
    """A column with a range of a million must not decide alone which center is nearest."""
    draw = np.random.default_rng(2)
    label = np.arange(3_000) % 2
    values = np.stack([draw.normal(0.2 + 0.6 * label, 0.05), draw.uniform(400_000, 600_000, 3_000)], axis=1)
    world.put("mixed", {"x": values[:, 0], "y": values[:, 1]}, bounds={"x": (0, 1), "y": (0, 1_000_000)})
    model = KMeans.of(world.run(kmeans(world.setting(4), table="mixed", columns=["x", "y"], k=2), "kmeans")[1])
    labels = model.predict(values)
    assert max(np.mean(labels == label), np.mean(labels != label)) > 0.99
    assert (labels == model.transform(values).argmin(axis=1)).all()
