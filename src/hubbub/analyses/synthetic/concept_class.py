"""A concept class: SQL conditions over declared columns, evaluated on every cell of the universe without any data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import Setting
from hubbub.analyses.tables.axes import Axis
from hubbub.core import numbers, reals
from hubbub.core.schema import Kind
from hubbub.errors import QueryError
from hubbub.sql import postprocess
from hubbub.sql.bind import bind
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.expressions import Expr
from hubbub.sql.relations import Filter, Scan

Whole = NDArray[np.int64]

MAX_PREDICATES = 1000
#: Cells on which the predicates are evaluated.
MAX_CELLS = 1_000_000
#: Maximum number of cells times predicates, which are all in memory.
MAX_TRUTHS = 30_000_000


@dataclass(frozen=True)
class ConceptClass:
    """Counting questions over the atoms of a universe: the sets of cells that no question tells apart.

    asks     one row for each atom, one column for each different question: 1 where the atom satisfies it
    atoms    the atom of each cell
    first    the first cell of each atom, which stands for it
    """

    asks: Whole
    atoms: Whole
    first: Whole

    @property
    def size(self) -> int:
        """The number of different questions."""
        return int(self.asks.shape[1])


def concept_class(setting: Setting, table: str, axes: Sequence[Axis], predicates: Sequence[object]) -> ConceptClass:
    """Evaluate SQL conditions on all cells, and merge cells and questions that cannot be told apart."""
    if not 1 <= len(predicates) <= MAX_PREDICATES or not all(isinstance(each, str) for each in predicates):
        raise QueryError(
            "HB682",
            f"predicates must list 1 to {MAX_PREDICATES} SQL conditions.",
            "Use predicates => ['age >= 65', 'region = ''North'' AND smokes'].",
        )
    shape = [each.size for each in axes]
    if prod(shape) > MAX_CELLS:
        raise QueryError(
            "HB594",
            f"The columns have more than {MAX_CELLS:,} cells.",
            "Use fewer columns or categories, or CALL mwem(…) or CALL synthetic(…), which have no such limit.",
        )
    if prod(shape) * len(predicates) > MAX_TRUTHS:
        raise QueryError(
            "HB594",
            f"{len(predicates):,} predicates on {prod(shape):,} cells are more than {MAX_TRUTHS:,} values.",
            "Use fewer predicates, columns or categories.",
        )
    places = np.indices(shape).reshape(len(shape), -1)
    columns = {each.name: np.array(each.labels, dtype=object)[at] for each, at in zip(axes, places, strict=True)}
    kinds = {each.name: each.kind for each in axes if each.edges is None and None not in each.labels}
    truths = np.stack([_evaluate(setting, table, str(each), columns, kinds) for each in predicates], axis=1)
    # a question and its opposite have the same error: keep the first of those that are equal up to this
    _, kept = np.unique(truths ^ truths[:1], axis=1, return_index=True)
    asks = truths[:, np.sort(kept)]
    atoms, first, place = np.unique(asks, axis=0, return_index=True, return_inverse=True)
    return ConceptClass(atoms.astype(np.int64), place.reshape(-1).astype(np.int64), first.astype(np.int64))


def size_for(accuracy: Fraction, questions: int) -> int:
    """Give a number of rows m of which some database is within `accuracy` on all questions, whatever the data.

    Theorem (Small databases suffice). If 2·|C|·exp(−2mγ²) < 1, then for every dataset and class C of counting
    questions some database of m rows answers all of them within γ, as a share of the rows (Blum, Ligett and Roth 2008,
    with ln|C| for the Vapnik–Chervonenkis dimension, which is at most log₂|C|).
    Proof    Of m rows drawn from the data, each question is off by more than γ with probability at most 2·exp(−2mγ²)
             (Hoeffding); by the union bound, with positive probability none is.
    Tested   tests/analyses/synthetic/test_concept_class.py::test_some_small_database_is_accurate_for_every_dataset

    >>> size_for(Fraction(1, 5), 4)
    26
    """
    gamma = numbers.in_range(accuracy, "accuracy", Fraction(1, 1000), Fraction(1, 2))
    return int(reals.log(Fraction(2 * questions))[1] / (2 * gamma * gamma)) + 1


def _evaluate(
    setting: Setting,
    table: str,
    predicate: str,
    columns: Mapping[str, NDArray[np.object_]],
    kinds: Mapping[str, Kind],
) -> NDArray[np.bool_]:
    """Evaluate one condition on every cell; NULL counts as false."""
    text = f"SELECT COUNT(*) AS n FROM {DUCKDB.identifier(table)} WHERE (\n{predicate}\n)"  # noqa: S608 - bound and checked
    query = bind(text, tables=setting.tables)
    relation = query.relation
    whole = not query.keys and len(query.aggregates) == 1 and query.having is None and query.limit is None
    if not whole or not isinstance(relation, Filter) or not isinstance(relation.input, Scan):
        raise QueryError(
            "HB682", f"{predicate!r} is not a condition on the rows of {table}.", "Use a condition such as 'age >= 65'."
        )
    scan, test = relation.input, relation.predicate
    missing = sorted(set(scan.sources) - kinds.keys())
    if missing:
        raise QueryError(
            "HB682",
            f"{predicate!r} uses {missing[0]}, which is not one of the columns by its values.",
            "Add it to columns, without bins, edges or missing; its values must be declared.",
        )
    answers = {
        col.name: (np.array([_plain(value) for value in columns[source]]), kinds[source])
        for col, source in zip(scan.columns, scan.sources, strict=True)
    }
    return _truth(answers, test)


def _truth(answers: postprocess.Columns, test: Expr) -> NDArray[np.bool_]:
    (found,) = postprocess.evaluate(answers, [test])
    return np.asarray(np.ma.filled(np.ma.asarray(found), fill_value=False), dtype=np.bool_)


def _plain(value: object) -> object:
    return str(value) if not isinstance(value, bool | int | float | str) else value
