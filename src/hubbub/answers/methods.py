"""The analyses as methods of a session, embedded or remote; each creates the text of a call.

Tested in tests/analyses/test_registry.py.
"""

from collections.abc import Callable, Sequence
from typing import Unpack

from hubbub.answers.methods_base import AnalysisOptions, R
from hubbub.answers.methods_graphs import GraphMethods
from hubbub.answers.methods_programs import ProgramMethods
from hubbub.answers.methods_statistics import StatisticsMethods
from hubbub.answers.methods_tables import TableMethods
from hubbub.answers.options import Options
from hubbub.core.numbers import Number

__all__ = ["Analyses", "AnalysisOptions", "Estimates"]


class Analyses(TableMethods[R], GraphMethods[R], ProgramMethods[R], StatisticsMethods[R]):
    """One method per analysis; `call` runs any of them by name.

    `h.kmeans(…)` runs an analysis and returns a release; `h.estimates.kmeans(…)` returns an estimate for free.
    """

    def choose(
        self,
        candidates: Sequence[object] | str,
        score: str,
        *,
        method: str | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Choose the candidate with the largest score: SQL for one COUNT or SUM, in which $1 is the candidate."""
        listed = candidates if isinstance(candidates, str) else [_constant(each) for each in candidates]
        return self.call("choose", {"candidates": listed, "score": score, "method": method}, **options)

    def binomial_count(self, table: str, query: str, **options: Unpack[AnalysisOptions]) -> R:
        """Release a COUNT or SUM with binomial noise, whose error is never more than half of the coins."""
        return self.call("binomial_count", {"table": table, "query": query}, **options)

    def above_threshold(
        self,
        table: str,
        name: str,
        threshold: Number,
        *,
        hits: int | None = None,
        questions: int | None = None,
        sensitivity: Number | None = None,
        monotone: bool | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Open a session of questions that `compare` answers by whether they reach a threshold, with one charge."""
        arguments: dict[str, object] = {
            "table": table,
            "name": name,
            "threshold": threshold,
            "hits": hits,
            "questions": questions,
            "sensitivity": sensitivity,
            "monotone": monotone,
        }
        return self.call("above_threshold", arguments, **options)

    def compare(self, table: str, name: str, query: str, *, threshold: Number | None = None) -> R:
        """Answer whether a COUNT or SUM reaches the threshold of a session. Charges nothing more."""
        return self.call("compare", {"table": table, "name": name, "query": query, "threshold": threshold})

    def stream(
        self,
        table: str,
        name: str,
        *,
        kind: str,
        universe: tuple[int, int] | None = None,
        outputs: int | None = None,
        classic: bool | None = None,
        horizon: int | None = None,
        window: int | None = None,
        bins: Sequence[str] | None = None,
        bound: int | None = None,
        method: str | None = None,
        private_state: bool | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> R:
        """Buy a stream over a dataset, with one charge for all its releases; `hubbub stream` starts and feeds it."""
        arguments: dict[str, object] = {
            "table": table,
            "name": name,
            "kind": kind,
            "universe": None if universe is None else list(universe),
            "outputs": outputs,
            "classic": classic,
            "horizon": horizon,
            "window": window,
            "bins": None if bins is None else list(bins),
            "bound": bound,
            "method": method,
            "private_state": private_state,
        }
        return self.call("stream", arguments, **options)


class Estimates(Analyses[R]):
    """The analyses as methods that return estimates: `h.estimates.kmeans(…)`."""

    def __init__(self, estimate: Callable[..., R]) -> None:
        """Use `h.estimates`."""
        self._estimate = estimate

    def _run_call(self, text: str, key: str | None, options: Options) -> R:  # noqa: ARG002 - an estimate has no key
        return self._estimate(text, **options)


def _constant(candidate: object) -> object:
    """Write a candidate with several values as a list."""
    return list(candidate) if isinstance(candidate, tuple) else candidate
