"""A cube that would answer the questions of the past, from their texts and the declarations alone."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from hubbub.core import call
from hubbub.core.schema import Column, Kind, Table
from hubbub.errors import HubbubError
from hubbub.sql.parse import parse

#: Most columns of a marginal that are proposed, and which share of the questions it should serve.
_MAX_ORDER, _SERVED = 3, 0.9


@dataclass(frozen=True)
class CubeSuggestion:
    """What to buy, and how many of the questions it would answer.

    asked     the questions that could be read
    answered  those whose columns and measures the cube has
    """

    dataset: str
    columns: tuple[str, ...]
    measures: tuple[str, ...]
    order: int
    asked: int
    answered: int

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        listed = {"columns": list(self.columns), "measures": list(self.measures), "order": self.order}
        return {"dataset": self.dataset, **listed, "asked": self.asked, "answered": self.answered}

    def lines(self) -> tuple[str, ...]:
        """Say it in words, with the command."""
        if not self.columns:
            return (f"{self.asked:,} questions of {self.dataset} can be read, and none that a cube would answer.",)
        return (
            f"{self.answered:,} of {self.asked:,} questions of {self.dataset} read at most {self.order} of these.",
            f"hubbub publish cube {self.dataset} --columns {','.join(self.columns)} "
            f"--measures '{','.join(self.measures)}' --order {self.order} --epsilon 1",
        )


def suggest_cube(texts: Iterable[str], table: Table) -> CubeSuggestion:
    """Propose columns, measures and an order; questions count as often as they were asked."""
    known = {each.name.lower(): each for each in table.columns if not each.hidden}
    asked = Counter(each for each in (_read(text, known) for text in texts) if each is not None)
    fitting = {each: count for each, count in asked.items() if each[0] is not None}
    total = sum(fitting.values())
    order, served = 0, 0
    while order < _MAX_ORDER and served < _SERVED * total:
        order += 1
        served = sum(count for (keys, _), count in fitting.items() if keys is not None and len(keys) <= order)
    kept = [each for each in fitting if each[0] is not None and len(each[0]) <= order]
    columns = sorted({name for keys, _ in kept for name in keys or ()})
    sums = sorted({name for _, summed in kept for name in summed})
    return CubeSuggestion(
        table.name, tuple(columns), ("count", *(f"sum({name})" for name in sums)), order, sum(asked.values()), served
    )


def _read(text: str, known: dict[str, Column]) -> tuple[frozenset[str] | None, frozenset[str]] | None:
    """Return the key columns and the summed columns of a question; None of keys where no cube answers it."""
    if call.is_call(text):
        return None
    try:
        tree, _ = parse(text.partition(" -- ")[0])
    except HubbubError:
        return None
    nothing = (None, frozenset[str]())
    if len(list(tree.find_all(exp.Select))) != 1 or list(tree.find_all(exp.Join)):
        return nothing
    summed = set[str]()
    for aggregate in tree.find_all(exp.AggFunc):
        if isinstance(aggregate, exp.Sum | exp.Avg) and isinstance(aggregate.this, exp.Column):
            summed.add(aggregate.this.name.lower())
        elif not isinstance(aggregate, exp.Count) or isinstance(aggregate.this, exp.Distinct):
            return nothing
    read = {column.name.lower() for column in tree.find_all(exp.Column)}
    keys = read - summed
    if not read <= known.keys() or any(known[name].bounds is None for name in summed):
        return nothing
    if not all(_finite(known[name]) for name in keys):
        return nothing
    return frozenset(known[name].name for name in keys), frozenset(known[name].name for name in summed)


def _finite(column: Column) -> bool:
    """Tell whether the declarations list the values of a column."""
    if column.values is not None or column.kind is Kind.BOOLEAN:
        return True
    return column.bounds is not None and column.kind in (Kind.INTEGER, Kind.DATE)
