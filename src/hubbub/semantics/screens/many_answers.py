"""A screen about many equal answers: what they cost together by each composition theorem.

Tested in tests/semantics/screens/test_many_answers.py.
"""

from fractions import Fraction
from functools import lru_cache
from itertools import islice

from hubbub.accounting import compose
from hubbub.core.loss import Pure
from hubbub.core.numbers import brief
from hubbub.core.unit import Relation
from hubbub.semantics.screens import base
from hubbub.semantics.screens.base import Reading, Screen, ceiling
from hubbub.semantics.screens.figures import Curves

_THEOREMS = {
    "basic": "the sum (basic composition)",
    "advanced": "advanced composition (2010)",
    "renyi": "Rényi divergences",
    "optimal": "optimal composition",
}
_POINTS = 12  # of a curve: optimal composition adds up as many terms as there are answers


@lru_cache(maxsize=64)
def many(*, epsilon: Fraction, count: int, delta: Fraction) -> Reading:
    """Compare what `count` answers of ε cost together: by each theorem, on disjoint parts, and by halves."""
    loss = Pure(epsilon)
    together = compose.ways(loss, count=count, delta=delta)
    parts = [loss] * min(count, 2)
    disjoint = {relation: compose.parallel(parts, relation=relation) for relation in Relation}
    halves = list(islice(compose.halving(epsilon), 3))
    counts = sorted({max(1, count * place // _POINTS) for place in range(1, _POINTS + 1)})
    curves: dict[str, list[tuple[float, float]]] = {name: [] for name in _THEOREMS}
    for k in counts:
        for name, value in compose.ways(loss, count=k, delta=delta).items():
            curves[name].append((float(k), float(value)))
    return Reading(
        (
            f"{count:,} answers at ε = {brief(epsilon)} each lose at most ε = {ceiling(together['basic'])} together."
            " That is certain, and the sum is what a budget with δ = 0 counts.",
            f"If a loss above ε is allowed with δ = {brief(delta)}, at most ε = {ceiling(together['optimal'])} is lost"
            " together: most answers lose less than their worst case, and it is unlikely that all errors point the same"
            " way. No theorem about answers of this ε alone can do better.",
            "Analyses of disjoint groups of people are not added up: however many there are, they lose"
            f" {ceiling(_pure(disjoint[Relation.ADD_REMOVE]))} if a neighbor has one person more or less, and"
            f" {ceiling(_pure(disjoint[Relation.REPLACE]))} if one person is replaced, who may change groups.",
            f"A program that does not know its number of rounds can spend"
            f" {', '.join(brief(half) for half in halves)}, …: however many rounds it takes, less"
            f" than ε = {brief(epsilon)} is spent.",
        ),
        ("theorem", "ε together"),
        tuple((_THEOREMS[name], ceiling(value)) for name, value in together.items()),
        Curves(
            f"ε of many answers at {brief(epsilon)} each, with δ = {brief(delta)}",
            "answers",
            "ε together",
            tuple((_THEOREMS[name], tuple(points)) for name, points in curves.items()),
            at=float(count),
            top=max(float(together["basic"]), 1e-9),
        ),
    )


def _pure(loss: object) -> Fraction:
    if not isinstance(loss, Pure):
        raise TypeError("pure losses compose in parallel to a pure loss")
    return loss.epsilon


SCREEN = Screen(
    "many",
    "What do a hundred answers cost together?",
    "Composition of equal losses (Dwork, McSherry, Nissim and Smith 2006; Dwork, Rothblum and Vadhan 2010; Kairouz, Oh"
    " and Viswanath 2015; Mironov 2017), and halving budgets (Dwork 2011).",
    (
        base.epsilon("0.1", high="2"),
        base.whole("count", "Answers", 100, steps=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000), low=1, high=1000),
        base.delta("1e-6", high="0.5"),
    ),
    many,
)
