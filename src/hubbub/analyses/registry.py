"""The analyses that can be called, by name, and how a call becomes something that can be charged and run."""

import difflib
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from hubbub.analyses.arguments import fitted
from hubbub.analyses.base import Arrays, Prepared, Published, Run, Setting
from hubbub.answers.release import Release
from hubbub.core.call import Call
from hubbub.core.events import Event
from hubbub.core.schema import Table
from hubbub.core.secret import Secret
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError
from hubbub.noise.source import Source
from hubbub.sql.bounding import Limits

#: Where each analysis is prepared: module and function. Modules are imported when they are called for.
ANALYSES: Mapping[str, str] = {
    "decision_tree": "hubbub.analyses.programs.tree:decision_tree",
    "frequent_itemsets": "hubbub.analyses.programs.itemsets:frequent_itemsets",
    "hyperplane": "hubbub.analyses.programs.hyperplane:hyperplane",
    "kmeans": "hubbub.analyses.programs.kmeans:kmeans",
    "linear_regression": "hubbub.analyses.programs.regression:linear_regression",
    "logistic_regression": "hubbub.analyses.programs.regression:logistic_regression",
    "moments": "hubbub.analyses.programs.moments:moments",
    "pca": "hubbub.analyses.programs.moments:pca",
    "geography": "hubbub.analyses.tables.geography:geography",
    "ranges": "hubbub.analyses.tables.ranges:ranges",
    "mwem": "hubbub.analyses.synthetic.mwem:mwem",
    "small_database": "hubbub.analyses.synthetic.blr:small_database",
    "synthetic": "hubbub.analyses.synthetic.synthetic:synthetic",
    "tabulate": "hubbub.analyses.tables.contingency:tabulate",
    "min_cut": "hubbub.analyses.graphs.answers:min_cut",
    "spanning_tree": "hubbub.analyses.graphs.answers:spanning_tree",
    "graph_distance": "hubbub.analyses.graphs.answers:graph_distance",
    "degree_histogram": "hubbub.analyses.graphs.answers:degree_histogram",
    "triangle_count": "hubbub.analyses.graphs.answers:triangle_count",
    "stream": "hubbub.analyses.streams.buying:stream",
}

#: The class of each analysis whose release makes a model, with a class method `of(release)`.
MODELS: Mapping[str, str] = {
    "decision_tree": "hubbub.analyses.programs.tree:DecisionTree",
    "frequent_itemsets": "hubbub.analyses.programs.itemsets:Itemsets",
    "hyperplane": "hubbub.analyses.programs.hyperplane:Hyperplane",
    "kmeans": "hubbub.analyses.programs.kmeans:KMeans",
    "linear_regression": "hubbub.analyses.programs.regression:LinearRegression",
    "logistic_regression": "hubbub.analyses.programs.regression:LogisticRegression",
    "moments": "hubbub.analyses.programs.moments:Covariance",
    "pca": "hubbub.analyses.programs.moments:PCA",
    "geography": "hubbub.analyses.tables.geography:Geography",
    "ranges": "hubbub.analyses.tables.ranges:Ranges",
    "synthetic": "hubbub.analyses.synthetic.utility:Synthetic",
    "tabulate": "hubbub.analyses.tables.contingency:Table",
}

#: Analyses of an owner's own code: a text names it by its hash, and cannot bring it.
OWN = ("release", "sample_and_aggregate")

#: Told how far a run is, from 0 to 1, and what it does now.
Progress = Callable[[float, str], None]


@dataclass(frozen=True, slots=True)
class Called:
    """A prepared call: what the curator charges and runs."""

    call: Call
    prepared: Prepared

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that it reads."""
        return self.prepared.tables

    @property
    def epsilon(self) -> Fraction:
        """What it costs."""
        return self.prepared.epsilon

    @property
    def delta(self) -> Fraction:
        """The δ that it uses."""
        return self.prepared.delta

    @property
    def event(self) -> Event:
        """The facts that are charged."""
        return self.prepared.event

    @property
    def relation(self) -> Relation:
        """What neighbors are."""
        return self.prepared.relation

    @property
    def limits(self) -> Limits | None:
        """What one unit may contribute."""
        return self.prepared.limits

    @property
    def derivation(self) -> tuple[str, ...]:
        """How the noise follows from the declarations."""
        return self.prepared.derivation

    def run(self, ask: Callable[[str], Secret[Arrays]], source: Source, progress: Progress) -> Published:
        """Run it, after its charge."""
        return self.prepared.run(_Running(ask, source, progress))


@dataclass(frozen=True, slots=True)
class _Running:
    ask: Callable[[str], Secret[Arrays]]
    source: Source
    progress: Progress


def prepare(call: Call, setting: Setting, own: Callable[[Setting], Prepared] | None = None) -> Called:
    """Find the analysis and let it check its arguments; pure, whatever it ends in."""
    if call.name in OWN:
        if own is None:
            raise QueryError(
                "HB597",
                f"{call.name} runs code, and code is handed in where the data is, by who holds it.",
                "Open the data with hubbub.open, and say h.release(f, …) or h.sample_and_aggregate(f, …).",
            )
        return Called(call, own(setting))
    if call.name not in ANALYSES:
        near = difflib.get_close_matches(call.name, ANALYSES, 1)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise QueryError(
            "HB582", f"there is no analysis called {call.name}.", f"{hint}There are: {', '.join(sorted(ANALYSES))}."
        )
    make, known, needed = _signature(call.name)
    unknown, missing = sorted(set(call.arguments) - known), sorted(needed - set(call.arguments))
    if unknown or missing:
        what = f"has no argument called {unknown[0]}" if unknown else f"needs the argument {missing[0]}"
        raise QueryError("HB582", f"{call.name} {what}.", f"Its arguments are: {', '.join(sorted(known))}.")
    return Called(call, make(setting, **fitted(call.name, make, call.arguments)))


def function(name: str) -> Callable[..., Prepared]:
    """Give the function that prepares an analysis."""
    found: Callable[..., Prepared] = _named(ANALYSES[name])
    return found


def model(release: Release) -> Any:
    """Make the model that an analysis published: see `hubbub.model`."""
    name = release.receipt.get("analysis", "")
    if name not in MODELS:
        raise ParameterError(
            "HB151", "this release makes no model.", f"Those of these analyses do: {', '.join(sorted(MODELS))}."
        )
    return _named(MODELS[name]).of(release)


def _named(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


@cache
def _signature(name: str) -> tuple[Callable[..., Prepared], frozenset[str], frozenset[str]]:
    make: Callable[..., Any] = function(name)
    given = [each for each in inspect.signature(make).parameters.values() if each.kind is each.KEYWORD_ONLY]
    needed = frozenset(each.name for each in given if each.default is each.empty)
    return make, frozenset(each.name for each in given), needed


__all__ = ["ANALYSES", "MODELS", "Called", "Progress", "Run", "function", "model", "prepare"]
