"""A small synthetic database that answers many counting queries (Blum, Ligett and Roth).

CALL small_database(table => 'patients', columns => ['sick', 'smokes', 'old'], size => 10)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from math import comb, prod
from typing import cast

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.synthetic.concept_class import ConceptClass, concept_class, size_for
from hubbub.analyses.tables.axes import axes
from hubbub.analyses.tables.marginals import Counts, Marginal, counts, marginal
from hubbub.analyses.tables.table_release import expected
from hubbub.answers.release import Output
from hubbub.core import numbers
from hubbub.core.events import Composed, Event
from hubbub.core.numbers import brief
from hubbub.errors import QueryError
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.split import portions

Whole = NDArray[np.int64]

#: Maximum number of candidate databases.
MAX_DATABASES = 200_000
#: Maximum number of entries of the tables in memory: databases by cells or rows, and cells by questions.
MAX_ENTRIES = 30_000_000
#: Share of ε for the number of rows, if it is not public.
TOTAL_SHARE = 0.1
#: The confidence level of the expected error.
LEVEL = Fraction(19, 20)


def small_database(
    setting: Setting,
    *,
    table: str,
    columns: list[object],
    size: int | None = None,
    ways: int | None = None,
    total: int | None = None,
    where: str | None = None,
    predicates: list[str] | None = None,
    accuracy: Fraction | None = None,
) -> "SmallDatabase":
    """Prepare a small database that approximates the count of every conjunction of values, or of given predicates.

    size        the number of its rows; by default 10
    ways        the maximum number of columns in a conjunction; by default all
    total       the number of rows of the data, if it is public; then it is not measured and costs nothing
    predicates  the questions: SQL conditions on the columns, in place of conjunctions
    accuracy    γ, instead of a size: some database of the resulting size is within γ on all questions
    """
    on = axes(setting.table(table), columns)
    if (predicates is not None and ways is not None) or (accuracy is not None and size is not None):
        raise QueryError(
            "HB683",
            "small_database takes ways or predicates, and size or accuracy, not both.",
            "Leave one of each out.",
        )
    ways = len(on) if ways is None else numbers.integer(ways, "ways", 1, len(on))
    asked = None if predicates is None else concept_class(setting, table, on, predicates)
    universe = prod(each.size for each in on) if asked is None else len(asked.first)
    if asked is None and universe > MAX_DATABASES:
        raise _too_many(1, universe)
    count = asked.size if asked is not None else _conjunctions([each.size for each in on], ways)
    if accuracy is None:
        size = 10 if size is None else numbers.integer(size, "size", 1, 1_000)
    else:
        size = size_for(accuracy, count)
    if total is not None:
        total = numbers.integer(total, "total", 1, 10**12)
    # one cell has one database of each size: the first test is for sizes that an accuracy gives
    if size > MAX_DATABASES or comb(universe + size - 1, size) > MAX_DATABASES:
        raise _too_many(size, universe)
    entries = max(comb(universe + size - 1, size) * max(universe, size), universe * count)
    if entries > MAX_ENTRIES:
        raise QueryError(
            "HB594",
            f"A choice of {size:,} rows over {universe:,} cells for {count:,} questions needs {entries:,} numbers in"
            f" memory; the maximum is {MAX_ENTRIES:,}.",
            "Use fewer rows, columns or categories, or CALL mwem(…) or CALL synthetic(…), which have no such limit.",
        )
    cells = marginal(setting, table, on, where=where)
    parts = portions(setting.epsilon, [1.0] if total is not None else [1 - TOTAL_SHARE, TOTAL_SHARE])
    selection = Exponential.from_epsilon(
        candidates=comb(universe + size - 1, size),
        sensitivity=size * cells.contribution,
        monotone=False,
        relation=cells.relation,
        epsilon=parts[0],
    )
    events: list[tuple[Event, int]] = [(selection.event, 1)]
    lines = [
        f"one of {selection.candidates:,} databases of {size} rows, by its largest error over "
        f"{count:,} {'conjunctions' if asked is None else 'different predicates'}: exponential mechanism at "
        f"ε = {brief(selection.epsilon)}; a score moves by at most {selection.sensitivity:,}"
    ]
    if accuracy is not None:
        lines.append(f"{size} rows by ln of the number of questions: some such database is within {brief(accuracy)}")
    counted = None
    if total is None:
        counted = Laplace.from_epsilon(sensitivity=cells.part(1).l1, epsilon=parts[1])
        events.append((cast(Event, counted.event), 1))
        lines.append(f"the number of rows: Laplace noise of scale {brief(counted.scale)}")
    return SmallDatabase(
        protection=cells.protection,
        epsilon=setting.epsilon,
        delta=Fraction(0),
        event=Composed(tuple(events)),
        noise="exponential" if total is not None else "exponential, laplace",
        derivation=tuple(lines),
        # a count's error beyond that of the best database
        expected=(expected("conjunctions" if asked is None else "predicates", float(selection.error(LEVEL)) / size),),
        marginal=cells,
        size=size,
        ways=ways,
        total=total,
        selection=selection,
        counted=counted,
        asked=asked,
    )


def _too_many(size: int, universe: int) -> QueryError:
    return QueryError(
        "HB594",
        f"There are more than {MAX_DATABASES:,} databases of {size} rows over {universe:,} cells.",
        "Use fewer rows, columns or categories, or CALL mwem(…) or CALL synthetic(…), which have no such limit.",
    )


def _conjunctions(shape: Sequence[int], ways: int) -> int:
    return sum(prod(sizes) for count in range(1, ways + 1) for sizes in combinations(shape, count))


@dataclass(frozen=True, kw_only=True)
class SmallDatabase(PreparedAnalysis):
    """Select one of all databases of m rows by the accuracy of its conjunctions.

    Theorem (Small databases by the exponential mechanism). Let u(x, y) = −max_q |m·q(x) − n·q(y)| over counting
    questions q, n being public. If a unit adds at most D to any count, then u moves by at most m·D between neighbors,
    whatever y; so choosing y with probability ∝ exp(ε·u/(2mD)) costs ε. With probability 1 − β the largest error of a
    count, as a part of n, is within 2D(ln C + ln 1/β)/(εn) of that of the best of the C databases (Blum, Ligett and
    Roth 2008; McSherry and Talwar 2007).
    Proof    Each m·q(x) moves by at most m·D: it goes up by what one unit adds, which lies in [0, D], and down by what
             the unit in its place no longer adds. A maximum of absolute values moves no more than they do.
    Assumes  every universe of m-row databases is written out, so it is for small ones: what does not fit into memory is
             refused before the charge, by the declarations alone; n is the analyst's, or was
             measured with Laplace noise from a share of ε. With predicates, databases are over sets of cells that no
             predicate tells apart, which are fixed before the data is seen.
    Charges  the selection, and the count where n is not given.
    Tested   tests/analyses/synthetic/test_blr.py::test_expected_error_of_ten_rows_for_26_conjunctions_of_three_bits
             tests/analyses/synthetic/test_blr.py::test_neighbors_move_a_score_by_no_more_than_its_sensitivity
             tests/analyses/synthetic/test_blr.py::test_the_choice_is_private_by_enumeration
    """

    marginal: Marginal
    size: int
    ways: int
    total: int | None  #: the number of rows, if it is public
    selection: Exponential
    counted: Laplace | None  #: the noise on the number of rows, if it is not public
    asked: ConceptClass | None = None  #: the questions, if they are not all conjunctions

    def run(self, run: Run) -> Published:
        """Count the cells, select a database, publish its rows."""
        run.progress(0.1, "counting")
        truth = counts(run, [self.marginal])
        total = self.total
        if self.counted is not None:
            rule = self.counted
            total = max(1, truth.through(lambda found: rule.sample(int(found[0].sum()), run.source)))
        run.progress(0.3, "choosing")
        asked = self.asked or _all_conjunctions(self.marginal.shape, self.ways)
        every = databases(len(asked.first), self.size)

        def choose(found: Sequence[Counts]) -> int:
            atoms = np.bincount(asked.atoms, found[0], len(asked.first)).astype(np.int64)
            return self.selection.sample(scores(atoms, every, asked.asks, total or 1), run.source)

        place = truth.through(choose)
        chosen = np.bincount(asked.first, every[place], self.marginal.size).astype(np.int64)
        cells = np.repeat(np.arange(self.marginal.size), chosen)
        at = np.unravel_index(cells, self.marginal.shape)
        outputs = tuple(
            Output(axis.name, axis.kind.value, [axis.labels[int(code)] for code in codes])
            for axis, codes in zip(self.marginal.axes, at, strict=True)
        )
        return Published(outputs, {"rows": self.size, "total": total, "cells": chosen.tolist()})


def _all_conjunctions(shape: Sequence[int], ways: int) -> ConceptClass:
    cells = np.arange(prod(shape))
    return ConceptClass(questions(shape, ways), cells, cells)


def databases(universe: int, size: int) -> Whole:
    """List every database of a size, as counts of each cell.

    >>> databases(2, 3).tolist()
    [[3, 0], [2, 1], [1, 2], [0, 3]]
    """
    chosen = np.array(list(combinations_with_replacement(range(universe), size)), dtype=np.int64)
    found = np.zeros((len(chosen), universe), dtype=np.int64)
    np.add.at(found, (np.arange(len(chosen))[:, None], chosen), 1)
    return found


def questions(shape: Sequence[int], ways: int) -> Whole:
    """List every conjunction of one to `ways` columns, each as a column of 0 and 1 over the cells.

    >>> questions((2, 2), 2).shape, questions((2, 2, 2), 3).shape
    ((4, 8), (8, 26))
    """
    places = np.indices(shape).reshape(len(shape), -1)
    found = []
    for count in range(1, ways + 1):
        for columns in combinations(range(len(shape)), count):
            which: Whole = np.asarray(np.ravel_multi_index(list(places[list(columns)]), [shape[c] for c in columns]))
            found.append(np.arange(prod(shape[c] for c in columns))[None, :] == which[:, None])
    return np.concatenate(found, axis=1).astype(np.int64)


def scores(truth: Counts, every: Whole, asks: Whole, total: int) -> Whole:
    """Score each database by its largest error, in m-ths of a count; larger errors score lower."""
    size = int(every[:1].sum())
    true = size * (truth @ asks)
    found = np.empty(len(every), dtype=np.int64)
    for start in range(0, len(every), 10_000):  # in batches, because all answers at once would fill the memory
        found[start : start + 10_000] = -np.abs(true - total * (every[start : start + 10_000] @ asks)).max(axis=1)
    return found
