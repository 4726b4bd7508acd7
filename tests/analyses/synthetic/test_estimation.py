"""The estimated distribution, beside two oracles: a minimization over all cells, and Private-PGM's own package."""

import warnings
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import scipy.optimize

from hubbub.analyses.synthetic import estimation, junction_tree
from hubbub.analyses.synthetic.estimation import FLOOR, Estimated, NoisyMarginal, estimate
from hubbub.analyses.synthetic.junction_tree import Clique, Floats

SIZES, TOTAL = (2, 4, 3), 10_000.0


def summed(joint: Floats, columns: Clique, groups: Sequence[Sequence[int]]) -> Floats:
    """Sum the cells of a joint distribution, one by one."""
    found = np.zeros([max(own) + 1 for own in groups])
    for cell, share in np.ndenumerate(joint):
        found[tuple(own[cell[c]] for c, own in zip(columns, groups, strict=True))] += share
    return found.ravel()


def measurements(seed: int, deviation: float = 10.0) -> tuple[NoisyMarginal, ...]:
    some = np.random.default_rng(seed)
    joint = some.dirichlet(np.full(24, 3.0)).reshape(SIZES)
    wanted: list[tuple[Clique, tuple[tuple[int, ...], ...]]] = [
        *(((c,), (tuple(range(size)),)) for c, size in enumerate(SIZES)),
        ((0, 1), ((0, 1), (0, 1, 1, 0))),
        ((1, 2), ((0, 1, 2, 3), (0, 1, 2))),
    ]
    return tuple(
        NoisyMarginal(columns, groups, TOTAL * exact + some.normal(0, deviation, exact.size), deviation)
        for columns, groups in wanted
        for exact in [summed(joint, columns, groups)]
    )


def whole(found: Estimated) -> Floats:
    """Multiply the two cliques of three columns to a joint distribution."""
    assert found.tree.cliques == ((0, 1), (1, 2))
    one, other = found.tables
    return np.asarray(one[:, :, None] * other[None] / one.sum(axis=0)[None, :, None])


@pytest.mark.parametrize("prior", [1.0, 0.01])
def test_it_is_the_minimum_over_all_cells(prior: float) -> None:
    measured = measurements(1)
    start = np.ones(SIZES)
    for c, each in enumerate(measured[:3]):
        share = np.maximum(each.noisy, FLOOR * each.deviation)
        start = start * (share / share.sum()).reshape([-1 if i == c else 1 for i in range(3)])
    places = [
        np.array([summed(np.eye(24)[i].reshape(SIZES), each.columns, each.groups) for i in range(24)]).T
        for each in measured
    ]

    def value(logits: Floats) -> float:
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        off = [(TOTAL * at @ shares - each.noisy) / each.deviation for at, each in zip(places, measured, strict=True)]
        entropy = float((shares * np.log(shares / start.ravel())).sum())
        return 0.5 * float(sum((each**2).sum() for each in off)) + prior * TOTAL * entropy

    best = scipy.optimize.minimize(value, np.zeros(24), method="BFGS", options={"gtol": 1e-7})
    shares = np.exp(best.x - best.x.max())
    found = whole(estimate(SIZES, measured, TOTAL, steps=200, prior=prior)).ravel()
    assert value(np.log(found)) <= best.fun + 1e-6
    assert np.abs(found - shares / shares.sum()).max() < 1e-4


def test_it_is_that_of_private_pgm_where_the_prior_is_small() -> None:
    """Mirror descent of mbi, with JAX, on the same noisy numbers: the fitted sums differ by less than 1e-4."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jax
        import jax.numpy as jnp
        import mbi

    measured = measurements(2, deviation=5.0)

    def query(each: NoisyMarginal) -> Any:
        choices = [np.eye(max(own) + 1)[list(own)].T for own in each.groups]

        def sums(factor: Any) -> Any:
            table = factor.datavector(flatten=False)
            return (choices[0] @ table).ravel() if len(choices) == 1 else (choices[0] @ table @ choices[1].T).ravel()

        return sums

    with warnings.catch_warnings(), jax.enable_x64(True):  # noqa: FBT003 - as JAX has it
        warnings.simplefilter("ignore")
        domain = mbi.Domain(range(3), SIZES)
        found = [
            mbi.LinearMeasurement(jnp.asarray(each.noisy), each.columns, each.deviation, query(each))
            for each in measured
        ]
        peer = mbi.estimation.MirrorDescent().estimate(domain, found, known_total=TOTAL, iters=3000)
        theirs = [np.asarray(query(each)(peer.project(each.columns))) / TOTAL for each in measured]
    joint = whole(estimate(SIZES, measured, TOTAL, steps=500, prior=0.01))
    for each, other in zip(measured, theirs, strict=True):
        assert np.abs(summed(joint, each.columns, each.groups) - other).max() < 1e-4


def test_it_goes_on_from_earlier_potentials() -> None:
    measured = measurements(3)
    first = estimate(SIZES, measured[:4], TOTAL, steps=100, prior=0.01)
    again = estimate(SIZES, measured, TOTAL, steps=0, prior=0.01, start=first.potentials)
    wide = estimate(SIZES, measured[:4], TOTAL, steps=0, prior=0.01, start=first.potentials)
    assert again.tree != first.tree
    for column in range(2):
        assert np.allclose(again.tables[0].sum(axis=1 - column), first.tables[0].sum(axis=1 - column))
    assert wide.tables[0].tobytes() == first.tables[0].tobytes()


def test_the_same_numbers_give_the_same_bits() -> None:
    one, other = (estimate(SIZES, measurements(4), TOTAL, steps=50, prior=0.01) for _ in range(2))
    assert [each.tobytes() for each in one.tables] == [each.tobytes() for each in other.tables]


def test_the_number_of_steps_follows_from_public_sizes_alone() -> None:
    counts = []
    for seed, deviation in ((5, 10.0), (6, 0.01), (7, 1e6)):
        with patch.object(estimation, "calibrated", wraps=junction_tree.calibrated) as calls:
            estimate(SIZES, measurements(seed, deviation), TOTAL, steps=37, prior=0.01)
        counts.append(calls.call_count)
    assert counts == [39, 39, 39]


@pytest.mark.parametrize("deviation", [1e-6, 1.0, 1e12])
@pytest.mark.parametrize("factor", [-1e6, 0.0, 1e9])
def test_whatever_the_noise_is_the_tables_are_distributions(deviation: float, factor: float) -> None:
    measured = [
        NoisyMarginal(each.columns, each.groups, each.noisy * (factor if i % 2 else 1.0), deviation)
        for i, each in enumerate(measurements(8))
    ]
    for table in estimate(SIZES, measured, TOTAL, steps=60, prior=0.01).tables:
        assert np.isfinite(table).all()
        assert (table >= 0).all()
        assert table.sum() == pytest.approx(1.0)
