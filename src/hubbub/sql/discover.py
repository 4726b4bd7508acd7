"""Groups that nobody declared: a key is shown only where its noisy number of units passes a threshold."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core import numbers
from hubbub.core.schema import Kind
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.threshold import Threshold
from hubbub.noise.source import Source
from hubbub.sql.expressions import facts
from hubbub.sql.keys import Found
from hubbub.sql.measures import Reach, Units
from hubbub.sql.noised import Noised
from hubbub.sql.query import Aggregate, Query

#: The name of the answer that stands for the keys in the split of ε.
KEYS = "$keys"
UNITS = Units()
#: How much the keys matter beside an answer: the less noise, the smaller the groups that are found.
WEIGHT = 2


def needed(query: Query) -> bool:
    """Say whether a key's values are not known in advance."""
    return any(not facts(key.expr).values for key in query.keys)


def check(aggregates: Sequence[Aggregate]) -> None:
    """Refuse aggregates that need to know their groups in advance."""
    for aggregate in aggregates:
        if aggregate.function in ("count_distinct", "quantile", "min", "max", "mode"):
            raise QueryError(
                "HB564", f"{aggregate.function} is answered for declared groups only.",
                "Declare the values of the keys in hubbub.yaml, or ask for counts, sums and averages.",
            )  # fmt: skip


def groups(query: Query) -> Found:
    """Give the groups to be found, or refuse."""
    if len(query.sets) != 1:
        raise QueryError("HB564", "several grouping sets cannot be discovered at once.", "Ask for one at a time.")
    return Found(tuple(query.keys[place] for place in query.sets[0]))


def threshold(noised: Noised, reach: Reach, relation: Relation, delta: Fraction) -> Threshold:
    """Take the least threshold for half of δ; the ledger's filter keeps the other half for its conversions.

    Theorem (Discovered groups). Let each unit be counted once in at most G groups. Showing the groups whose noisy
    number of units reaches the threshold, with that number, and noisy sums for the groups that are shown, costs what
    the noises cost, and δ = 1 − (1 − p)^G besides, p being the chance that one unit's own group passes.
    Proof    By the theorem on thresholded keys the shown groups and their numbers keep the first loss but for δ. They
             are public from then on, so the sums over them are a further question about fixed groups, which a unit
             moves no further than it moves all groups: adaptive composition.
    Assumes  a unit's groups are bounded in the engine.
    Charges  Threshold(noise, keys, how far the threshold is above one) and the noise of every other measure.
    Tested   tests/sql/test_plan.py::test_discovered_groups_are_those_with_enough_people
    """
    return Threshold.least(
        keys=reach.touched, contribution=1, relation=relation, noise=noised.mechanism,
        delta=max(delta / 2, numbers.DELTA_MIN),
    )  # fmt: skip


def sample(
    found: Found, rule: Threshold, measures: Sequence[Noised], table: Mapping[str, NDArray[Any]], source: Source
) -> tuple[list[NDArray[Any]], list[NDArray[np.int64]]]:
    """Choose what is shown; give its keys, in their own order, and the noisy measures."""
    place = next(i for i, noised in enumerate(measures) if noised.measure == UNITS)
    positions, counts = rule.sample(np.asarray(table[f"m{place}"], dtype=np.int64), source)
    columns = [_plain(table[f"k{j}"], key.expr.kind)[positions] for j, key in enumerate(found.keys)]
    order = np.lexsort([_ranks(column) for column in reversed(columns)])
    noisy = [
        counts if i == place else noised.mechanism.sample(np.asarray(table[f"m{i}"], dtype=np.int64)[positions], source)
        for i, noised in enumerate(measures)
    ]
    return [column[order] for column in columns], [each[order] for each in noisy]


def _plain(column: NDArray[Any], kind: Kind) -> NDArray[Any]:
    filled = np.ma.getdata(column)
    return filled.astype(np.int64) if kind is Kind.INTEGER else filled


def _ranks(column: NDArray[Any]) -> NDArray[np.int64]:
    _, ranks = np.unique(column, return_inverse=True)
    return np.asarray(ranks, dtype=np.int64)
