"""The analyses that can be called, by name, and how a call is prepared."""

import difflib
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from hubbub.analyses.arguments import check_arguments
from hubbub.analyses.base import PreparedAnalysis, Setting
from hubbub.answers.release import Release
from hubbub.core.call import AnalysisCall
from hubbub.errors import ParameterError, QueryError


@dataclass(frozen=True, slots=True)
class Analysis:
    """One analysis that can be called: everything else follows from its function.

    module  the module of `hubbub.analyses` that has a function of the analysis's name; it is imported when it is called
    model   the class that reads its release with a class method `of(release)`; "module:class" if it is elsewhere
    """

    module: str
    model: str | None = None


#: The analyses by name.
ANALYSES: Mapping[str, Analysis] = {
    "anova": Analysis("statistics.means", model="Anova"),
    "chi_square": Analysis("statistics.chi_square", model="ChiSquare"),
    "decision_tree": Analysis("programs.tree", model="DecisionTree"),
    "difference_of_means": Analysis("statistics.means", model="DifferenceOfMeans"),
    "survival": Analysis("statistics.survival", model="SurvivalCurves"),
    "explainable_boosting": Analysis("programs.boosting", model="ExplainableBoosting"),
    "frequent_itemsets": Analysis("programs.itemsets", model="Itemsets"),
    "hyperplane": Analysis("programs.hyperplane", model="Hyperplane"),
    "kmeans": Analysis("programs.kmeans", model="KMeans"),
    "linear_regression": Analysis("programs.regression", model="LinearRegression"),
    "logistic_regression": Analysis("programs.logistic", model="programs.logistic_model:LogisticRegression"),
    "median": Analysis("programs.median"),
    "naive_bayes": Analysis("programs.naive_bayes", model="NaiveBayes"),
    "mean_vector": Analysis("programs.mean_vector"),
    "covariance": Analysis("programs.mean_vector"),
    "moments": Analysis("programs.moments", model="Covariance"),
    "poisson_regression": Analysis("statistics.poisson", model="PoissonRegression"),
    "pca": Analysis("programs.moments", model="PCA"),
    "perceptron": Analysis("programs.perceptron", model="Perceptron"),
    "geography": Analysis("tables.geography", model="Geography"),
    "random_forest": Analysis("programs.forest", model="RandomForest"),
    "ranges": Analysis("tables.ranges", model="Ranges"),
    "cube": Analysis("tables.cube", model="Cube"),
    "mwem": Analysis("synthetic.mwem"),
    "small_database": Analysis("synthetic.blr"),
    "synthetic": Analysis("synthetic.synthetic", model="synthetic.utility:Synthetic"),
    "synthetic_tables": Analysis("synthetic.related", model="synthetic.related_tables:RelatedTables"),
    "tabulate": Analysis("tables.contingency", model="ContingencyTable"),
    "min_cut": Analysis("graphs.answers"),
    "spanning_tree": Analysis("graphs.answers"),
    "single_linkage": Analysis("graphs.answers"),
    "graph_distance": Analysis("graphs.answers"),
    "degree_histogram": Analysis("graphs.answers"),
    "triangle_count": Analysis("graphs.answers"),
    "star_count": Analysis("graphs.answers"),
    "profile": Analysis("profile", model="Profile"),
    "choose": Analysis("choice"),
    "binomial_count": Analysis("binomial_count"),
    "above_threshold": Analysis("threshold"),
    "compare": Analysis("threshold"),
    "stream": Analysis("streams.purchase"),
}

#: Analyses that charge nothing: another one paid for them.
PAID_BEFORE = frozenset({"compare"})

#: Analyses that run user-defined functions: their text identifies the code by its hash.
USER_FUNCTIONS = ("release", "sample_and_aggregate")


def prepare(
    call: AnalysisCall, setting: Setting, own: Callable[[Setting], PreparedAnalysis] | None = None
) -> PreparedAnalysis:
    """Check the arguments of a call and prepare its analysis, without reading data."""
    if call.name in USER_FUNCTIONS:
        if own is None:
            raise QueryError(
                "HB597",
                f"{call.name} runs user-defined code, which only the data owner's own process can supply.",
                "Open the data with hubbub.open and call h.release(f, …) or h.sample_and_aggregate(f, …).",
            )
        return replace(own(setting), name=call.name)
    if call.name not in ANALYSES:
        near = difflib.get_close_matches(call.name, ANALYSES, 1)
        hint = f"Did you mean {near[0]}? " if near else ""
        known = ", ".join(sorted(ANALYSES))
        raise QueryError("HB582", f"There is no analysis called {call.name}.", f"{hint}Available: {known}.")
    make, known_arguments, required = _signature(call.name)
    unknown, missing = sorted(set(call.arguments) - known_arguments), sorted(required - set(call.arguments))
    if unknown or missing:
        problem = f"has no argument called {unknown[0]}" if unknown else f"requires the argument {missing[0]}"
        raise QueryError(
            "HB582", f"{call.name} {problem}.", f"Its arguments are: {', '.join(sorted(known_arguments))}."
        )
    return replace(make(setting, **check_arguments(call.name, make, call.arguments)), name=call.name)


def function(name: str) -> Callable[..., PreparedAnalysis]:
    """Give the function that prepares an analysis."""
    prepare_analysis: Callable[..., PreparedAnalysis] = _load(ANALYSES[name].module, name)
    return prepare_analysis


def model(release: Release) -> Any:
    """Make the model that an analysis published: see `hubbub.model`."""
    analysis = ANALYSES.get(release.analysis)
    if analysis is None or analysis.model is None:
        names = sorted(name for name, each in ANALYSES.items() if each.model is not None)
        raise ParameterError(
            "HB151", "This release has no model.", f"Releases of these analyses have one: {', '.join(names)}."
        )
    module, _, name = analysis.model.rpartition(":")
    return _load(module or analysis.module, name).of(release)


def _load(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"hubbub.analyses.{module}"), name)


@cache
def _signature(name: str) -> tuple[Callable[..., PreparedAnalysis], frozenset[str], frozenset[str]]:
    make: Callable[..., Any] = function(name)
    arguments = [each for each in inspect.signature(make).parameters.values() if each.kind is each.KEYWORD_ONLY]
    required = frozenset(each.name for each in arguments if each.default is each.empty)
    return make, frozenset(each.name for each in arguments), required
