"""How one noisy sum of a query follows from those of one view of an earlier release, and the noise of weighted sums.

Tested in tests/sql/test_derived.py.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from hubbub.core.chunked_json import dumps
from hubbub.sql.atoms import Grouping, grouping
from hubbub.sql.coarser import SourceView
from hubbub.sql.measured import CUBE_FORMAT, Described, parsed, size_of
from hubbub.sql.noise import AnyNoise, LinearNoise, NoNoise, variance_of

#: Weights are multiples of one part in so many: the loss of precision is below a millionth.
_PARTS = 1_000_000
#: The most views that one sum is averaged from, the most exact ones: each is read again and listed in the receipt.
MOST_VIEWS = 32
#: A sum whose rows were rounded to at least so many steps is exact compared with any noise.
_FINE = 1 << 20


@dataclass(frozen=True)
class Source:
    """An earlier release: what it measured, and the noise of a cell of each measure in each grouping set."""

    number: int
    facts: Mapping[str, Any]
    noises: tuple[tuple[AnyNoise, ...], ...]

    @cached_property
    def shared(self) -> bool:
        """Whether cells and sets may have draws in common."""
        return bool(self.facts.get("shared"))

    @cached_property
    def conditions(self) -> frozenset[str]:
        """The conditions that every row fulfills."""
        return frozenset(self.facts["where"])

    @cached_property
    def groupings(self) -> tuple[Grouping, ...]:
        """What puts a row into a cell, in each grouping set."""
        where = [parsed(each) for each in self.facts["where"]]
        return tuple(grouping(where, form, parsed) for form in self.facts.get("sets", ()))

    @cached_property
    def forms(self) -> tuple[str, ...]:
        """The one form of each grouping set, with the conditions: equal forms mean the same cells."""
        where = sorted(self.facts["where"])
        return tuple(dumps([where, form], sort_keys=True) for form in self.facts.get("sets", ()))

    @cached_property
    def measures(self) -> str:
        """The one form of its measures."""
        return dumps(self.facts["measures"], sort_keys=True)

    @cached_property
    def scales(self) -> str:
        """The one form of its noises and bounds: sources of one query with equal forms are as exact as each other."""
        return repr((self.noises, self.facts.get("bounds")))

    @cached_property
    def kind(self) -> str:
        """The one form of all that a derivation may read: sources with equal forms can take each other's place."""
        return "\n".join((*self.forms, self.measures, self.scales))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of cells of each grouping set."""
        return tuple(map(size_of, self.facts.get("sets", ())))

    @cached_property
    def variances(self) -> tuple[tuple[Fraction, ...], ...]:
        """The variance of the noise of a cell of each measure in each grouping set."""
        return tuple(tuple(variance_of(noise) for noise in each) for each in self.noises)

    @property
    def cube(self) -> bool:
        """Whether its sums are those behind a cube."""
        return self.facts.get("form") == CUBE_FORMAT


@dataclass(frozen=True)
class ViewTerm:
    """A sum of one source in one view, with its weight."""

    view: int
    place: int
    weight: Fraction


def from_view(
    form: Mapping[str, Any], place: int, measures: Sequence[Mapping[str, Any]], *, converting: bool
) -> tuple[ViewTerm, ...]:
    """Return a sum as one of a source, or as one about another center and a count; empty if it has neither."""
    if form in measures and form["kind"] != "sum":
        return (ViewTerm(place, measures.index(form), Fraction(1)),)
    if form["kind"] != "sum":
        return ()
    centers, counts = _centers(form), {"kind": "rows", "present": form["present"], "where": form["where"]}
    found: list[tuple[ViewTerm, ...]] = []
    for at, other in enumerate(measures):
        if other["kind"] != "sum" or not _same_sum(form, other):
            continue
        step, own = Fraction(other["step"]), Fraction(form["step"])
        term = ViewTerm(place, at, step / own)
        if _centers(other) == centers and other["offset"] == form["offset"]:
            return (term,)
        if converting and len(centers) == 1 and other["offset"] == form["offset"] == "0" and counts in measures:
            moved = (_centers(other)[0] - centers[0]) / own
            found.append((term, ViewTerm(place, measures.index(counts), moved)))
    return found[0] if found else ()


def _centers(form: Mapping[str, Any]) -> list[Fraction]:
    return [Fraction(term["center"]) for term in form["terms"]]


def _same_sum(form: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Say whether two sums are of the same values, and neither is rounded to coarse steps.

    Bounds may differ: those of an expression follow from declarations and from conditions that all its rows fulfill, so
    no value of a counted row is cut off by them.
    """
    same = all(form[name] == other[name] for name in ("present", "where"))
    bare = [[term["of"] for term in each["terms"]] for each in (form, other)]
    fine = form["step"] == other["step"] or min(form["steps"], other["steps"]) >= _FINE
    return same and bare[0] == bare[1] and fine


def noise_of(terms: Sequence[ViewTerm], views: Sequence[SourceView], sources: Sequence[Source]) -> AnyNoise:
    """Return the noise of a weighted sum; that of a single sum is the source's own, with its exact interval.

    Where cells have draws in common, their noises may add up: the noise of k cells is at most k times as wide. That of
    cells of a cube is computed from the draws themselves.
    """
    parts: list[tuple[AnyNoise, Fraction, int]] = []
    for term in terms:
        each = views[term.view]
        if each.made is not None:
            parts += [(noise, abs(term.weight) * own, count) for noise, own, count in each.spread[term.place]]
            continue
        noise, weight = sources[each.source].noises[term.place][each.part], abs(term.weight)
        shared = sources[each.source].shared
        parts.append((noise, weight * each.most, 1) if shared else (noise, weight, each.most))
    return weighted(parts)


def weighted(parts: Sequence[tuple[AnyNoise, Fraction, int]]) -> AnyNoise:
    """Return the noise of a sum of independent noises with their weights and numbers of copies."""
    if len(parts) == 1 and parts[0][1:] == (Fraction(1), 1):
        return parts[0][0]
    if all(isinstance(noise, NoNoise) for noise, _, _ in parts):
        return NoNoise()
    return LinearNoise(tuple(parts))  # type: ignore[arg-type]


def mean_of_views(
    form: Mapping[str, Any],
    views: Sequence[SourceView],
    sources: Sequence[Source],
    *,
    by_row: bool,
    converting: bool,
) -> tuple[ViewTerm, ...]:
    """Return the mean of what several views estimate, weighted by inverse variance."""
    found: list[tuple[tuple[ViewTerm, ...], Fraction]] = []
    made: dict[str, tuple[ViewTerm, ...]] = {}
    variances: dict[tuple[str, str, int, int], Fraction] = {}
    for place, each in enumerate(views):
        source = sources[each.source]
        cut = not (by_row or each.same) and "total" in source.facts["bounds"]
        if (each.most > 1 or cut) and form["kind"] not in ("rows", "sum"):
            continue
        if source.measures not in made:  # many releases of one query have the same measures
            made[source.measures] = from_view(form, 0, source.facts["measures"], converting=converting)
        terms = tuple(ViewTerm(place, term.place, term.weight) for term in made[source.measures])
        if terms and (each.made is not None or source.shared):
            found.append((terms, variance_of(noise_of(terms, views, sources))))
        elif terms:
            alike = (source.measures, source.scales, each.part, each.most)
            if alike not in variances:
                variances[alike] = _variance(terms, each, source)
            found.append((terms, variances[alike]))
    if not found:
        return ()
    found = _one_of_each_pool(found, views, sources)
    best = sorted(range(len(found)), key=lambda place: float(found[place][1]))[:MOST_VIEWS]
    found = [found[place] for place in sorted(best)]
    known = [each for each in found if not each[1]]
    weights = [Fraction(1)] if known else inverse_weights([variance for _, variance in found])
    chosen = [known[0]] if known else found
    return tuple(
        ViewTerm(term.view, term.place, weight if term.weight == 1 else term.weight * weight)
        for (terms, _), weight in zip(chosen, weights, strict=True)
        for term in terms
        if weight
    )


def _variance(terms: Sequence[ViewTerm], each: SourceView, source: Source) -> Fraction:
    """Return the variance of `noise_of` where every cell has a draw of its own, from those of the cells."""
    own = [source.variances[term.place][each.part] * term.weight**2 for term in terms]
    return each.most * (own[0] if len(own) == 1 else sum(own, Fraction(0)))


def _one_of_each_pool(
    found: Sequence[tuple[tuple[ViewTerm, ...], Fraction]], views: Sequence[SourceView], sources: Sequence[Source]
) -> list[tuple[tuple[ViewTerm, ...], Fraction]]:
    """Keep the most exact view of each source whose views have draws in common."""
    if not any(source.shared for source in sources):
        return list(found)
    best: dict[int, int] = {}
    for place, (terms, variance) in enumerate(found):
        source = views[terms[0].view].source
        if sources[source].shared and (source not in best or variance < found[best[source]][1]):
            best[source] = place
    alone = [not sources[views[terms[0].view].source].shared for terms, _ in found]
    return [each for place, each in enumerate(found) if alone[place] or place in best.values()]


def inverse_weights(variances: Sequence[Fraction]) -> list[Fraction]:
    """Return weights in inverse proportion to variances, in whole parts that add up to 1."""
    keys = [(variance.numerator, variance.denominator) for variance in variances]  # many are equal
    inverse = {(top, bottom): Fraction(bottom, top) for top, bottom in keys}
    whole = sum((count * inverse[key] for key, count in Counter(keys).items()), Fraction(0))
    part = {key: int(each * _PARTS / whole) for key, each in inverse.items()}
    parts = [part[key] for key in keys]
    parts[parts.index(max(parts))] += _PARTS - sum(parts)
    return [Fraction(part, _PARTS) for part in parts]


def fits(described: Described, source: Source) -> bool:
    """Say whether the bounds of a source are those that the query would have."""
    facts = source.facts
    return facts["given"] == list(described.given) and (facts["bounds"] is None) == described.by_row
