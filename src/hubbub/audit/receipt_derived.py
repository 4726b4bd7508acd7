"""Check an answer that follows from earlier releases: add up their sums again, with the weights of its receipt.

The checker imports nothing from the rest of hubbub but other files of the checker. It evaluates conditions and keys by
its own code, and says where it does not know a function. It does not compute columns and intervals again, and says so.

Tested in tests/audit/test_receipt_derived.py.
"""

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from itertools import product
from typing import Any

from hubbub.audit.receipt_atoms import (
    UnknownFunctionError,
    cell_finder,
    combinations,
    evaluated,
    keys_of,
    tree_of,
)
from hubbub.audit.receipt_cube import cube_sets, cube_values, numbers_of
from hubbub.audit.receipt_loss import ReceiptError


def check_measured(paper: Mapping[str, Any]) -> None:
    """Check that a receipt describes as many sums as were drawn, over the cells that it states."""
    measured = paper["measured"]
    cube = measured["form"] == 2
    _check_form(measured)
    count = len(measured["measures"])
    sizes = numbers_of(measured) if cube else [_size(each) for each in measured["sets"]]
    if cube and "analysis" not in paper:
        raise ReceiptError("Only an analysis releases a cube.")
    if len(measured["sums"]) != count or any(len(each) != sum(sizes) for each in measured["sums"]):
        raise ReceiptError("The receipt describes other sums than it has.")
    if "analysis" in paper:
        noises = measured.get("noises", [])
        if len(noises) != count or any(len(each) != len(sizes) for each in noises):
            raise ReceiptError("The receipt does not state the noise of every sum.")
        if cube and [event for each in noises for event in each] != [event for event, _ in paper["event"]["parts"]]:
            raise ReceiptError("The sums of a cube have other noises than were charged.")
    else:
        draws = paper["draws"]
        if "noises" in measured or count > len(draws):
            raise ReceiptError("The receipt describes other sums than were drawn.")
        if any(draw["kind"] not in ("sum", "public") for draw in draws[:count]):
            raise ReceiptError("Only sums over declared groups can be described.")
        if sizes != paper["cells"]:
            raise ReceiptError("The described sums are over other cells than the receipt states.")
    if measured["bounds"] != paper["bounds"]:
        raise ReceiptError("The described sums have other bounds than the receipt states.")


def _check_form(measured: Mapping[str, Any]) -> None:
    """Check that a description has the fields of its form: 2 is that of a cube."""
    cube = measured["form"] == 2
    fits = {"columns", "order", "shared"} <= measured.keys() if cube else not {"columns", "order"} & measured.keys()
    if not fits or ("sets" in measured) == cube:
        raise ReceiptError("The description of the sums has not the fields of its form.")


def check_derived(derived: Mapping[str, Any]) -> list[str]:
    """Check what the receipt of a derived answer shows by itself: no release and no draw counts twice."""
    numbers = [source["charge"] for source in derived["sources"]]
    views = [(view["source"], view["set"]) for view in derived["views"]]
    if len(set(numbers)) != len(numbers) or len(set(views)) != len(views):
        raise ReceiptError("A source is named twice, so that its noise would count as independent of itself.")
    if any(not source < len(numbers) for source, _ in views):
        raise ReceiptError("A view is of no source.")
    size = _size(derived["groups"])
    if any(not group < size for view in derived["views"] for group in view["cells"]):
        raise ReceiptError("A view has other groups than the answer.")
    terms = [(view, place) for measure in derived["measures"] for view, place, _ in measure]
    if any(not view < len(views) for view, _ in terms):
        raise ReceiptError("A term is of no view.")
    if not len(derived["measures"]) == len(derived["solved"]) == len(derived["sums"]) == len(derived["wanted"]):
        raise ReceiptError("The sums are not those of the measures.")
    for measure, solved in zip(derived["measures"], derived["solved"], strict=True):
        if bool(measure) == (solved is not None):
            raise ReceiptError("A measure is neither an average of views nor solved for, or both.")
        if solved is not None and len(solved["rows"]) != size:
            raise ReceiptError("A measure is solved for in other groups than those of the answer.")
    _check_draws(derived, len(numbers))
    if any(len(each) != size for each in derived["sums"]):
        raise ReceiptError("The sums are not those of the groups.")
    return [
        f"derived from {len(numbers)} release{'s' * (len(numbers) > 1)} (charge "
        f"{', '.join(map(str, numbers))}), which paid for the noise; nothing was drawn"
    ]


def _check_draws(derived: Mapping[str, Any], count: int) -> None:
    """Check that no draw of a source is in two terms; of releases that overlap, each cell has its own."""
    terms = [(view, place) for measure in derived["measures"] for view, place, _ in measure]
    draws = [(derived["views"][view]["source"], derived["views"][view]["set"], place) for view, place in terms]
    read = [
        {(source, place) for row in each["rows"] for source, place, _, _ in row} if each is not None else set()
        for each in derived["solved"]
    ]
    if any(not source < count for each in read for source, _ in each):
        raise ReceiptError("A term is of no source.")
    pairs = [pair for each in read for pair in each]
    if len(set(draws)) != len(draws) or len(set(pairs)) != len(pairs) or {(s, p) for s, _, p in draws} & set(pairs):
        raise ReceiptError("One noisy sum is in two terms.")


def check_sources(paper: Mapping[str, Any], sources: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """Derive the sums of an answer again from the receipts of its sources, by the number of their charge.

    Theorem (Derived again). A receipt that passes has sums that are, exactly, the stated weighted sums of what its
    sources released about the same version of the same data under the same declarations; no noisy number is in two of
    their terms; each cell of a source is in at most one group, with the keys of the group; and the weights of each
    measure add up to one. Where the query has no condition that a source has not, a group has all of its cells.
    Assumes  the receipts of the sources are those of the ledger. Descriptions mean what they say.
    Tested   tests/audit/test_receipt_derived.py::test_every_planted_error_is_found
    """
    derived = paper["derived"]
    papers = [_source(named, sources[named["charge"]], paper) for named in derived["sources"]]
    _check_pools(derived, papers)
    unknown = sum(_check_view(view, papers[view["source"]]["measured"], derived) for view in derived["views"])
    for place, stated in enumerate(derived["sums"]):
        solved, wanted = derived["solved"][place], derived["wanted"][place]
        if solved is None:
            _check_weights(wanted, derived["measures"][place], derived, papers)
            total = _averaged(derived, derived["measures"][place], papers, len(stated))
        else:
            unknown += check_solved(solved, wanted, derived, papers)
            total = [
                sum((Fraction(w) * papers[s]["measured"]["sums"][at][cell] for s, at, cell, w in row), Fraction(0))
                for row in solved["rows"]
            ]
        if [str(value) for value in total] != stated:
            raise ReceiptError("The sums do not follow from the sources with the stated weights.")
    lines = [f"{len(derived['sums'])} × {len(derived['sums'][0])} sums follow exactly from the sources"]
    if unknown:
        lines.append("some conditions and keys use functions that the checker does not compute, and were not evaluated")
    return [*lines, "columns and intervals are not computed again from the sums"]


def _check_pools(derived: Mapping[str, Any], papers: Sequence[Mapping[str, Any]]) -> None:
    """Check that of sums that have draws in common none is read in two views: their noises are not independent."""
    read = {(view, place) for measure in derived["measures"] for view, place, _ in measure}
    pools = [(derived["views"][view]["source"], place) for view, place in read]
    if any(papers[s]["measured"].get("shared", False) and pools.count((s, place)) > 1 for s, place in pools):
        raise ReceiptError("One noisy sum is in two terms.")


def _averaged(
    derived: Mapping[str, Any], terms: Sequence[Any], papers: Sequence[Mapping[str, Any]], size: int
) -> list[Fraction]:
    total = [Fraction(0)] * size
    for place, at, weight in terms:
        view = derived["views"][place]
        values = _values(papers[view["source"]]["measured"], view["set"], at)
        for cell, group in enumerate(view["cells"]):
            if group >= 0:
                total[group] += Fraction(weight) * values[cell]
    return total


def _values(measured: Mapping[str, Any], number: int, at: int) -> Sequence[Fraction | int]:
    """Return the noisy cells of a grouping set."""
    sums: Sequence[int] = measured["sums"][at]
    if measured["form"] == 2:
        return cube_values(measured, number, sums)
    first = sum(_size(each) for each in measured["sets"][:number])
    return sums[first : first + _size(measured["sets"][number])]


def _source(named: Mapping[str, Any], source: Mapping[str, Any], paper: Mapping[str, Any]) -> Mapping[str, Any]:
    """Check that a source is a release of the same data that was paid for itself."""
    number = named["charge"]
    if "measured" not in source:
        raise ReceiptError(f"Release {number} has no noisy sums of its own.")
    text = json.dumps(source["measured"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if sha256(text.encode()).hexdigest() != named["measured"] or source["ledger"][0]["hash"] != named["hash"]:
        raise ReceiptError(f"Release {number} is not the one that the receipt names.")
    for name in ("data", "relation", "declared"):
        if source[name] != paper[name]:
            raise ReceiptError(f"Release {number} is about other data, or under other declarations.")
    if source["measured"]["of"] != paper["derived"]["of"]:
        raise ReceiptError(f"Release {number} is about other tables.")
    check_measured(source)
    return source


def _check_view(view: Mapping[str, Any], measured: Mapping[str, Any], derived: Mapping[str, Any]) -> bool:
    """Check that cells are in groups with their keys; return whether something could not be evaluated."""
    sets = cube_sets(measured) if measured["form"] == 2 else measured["sets"]
    if not view["set"] < len(sets):
        raise ReceiptError("A view is of no grouping set of its source.")
    if not set(measured["where"]) <= set(derived["where"]):
        raise ReceiptError("A source has a condition that the query has not.")
    form, groups = sets[view["set"]], derived["groups"]
    cells, size = _cells(form), _size(groups)
    if len(cells) != len(view["cells"]):
        raise ReceiptError("A view has other cells than its source.")
    more = [each for each in derived["where"] if each not in measured["where"]]
    keys, own = keys_of(form), {key["of"] for key in groups["keys"]}
    texts = [key["of"] for key in form["keys"]]
    for key, text in zip(form["keys"], texts, strict=True):
        if not key["whole"] and text not in own and not _excludes(more, text):
            raise ReceiptError("Rows that are in no cell of a source would be missing.")
    if set(view["cells"]) - {-1} != set(range(size)):
        raise ReceiptError("A group has no cell.")
    find = cell_finder(more, groups)
    try:
        for cell, group in zip(cells, view["cells"], strict=True):
            known = {text: values[code] for text, (_, values), code in zip(texts, keys, cell, strict=True)}
            if find(known) != group:
                raise ReceiptError("A cell of a source is in a group with other keys.")
    except UnknownFunctionError:
        return True
    return False


def _excludes(conditions: Sequence[str], text: str) -> bool:
    """Say whether some condition on this key alone is not fulfilled where the key is NULL."""
    for condition in conditions:
        try:
            if evaluated(tree_of(condition), {text: None}) is not True:
                return True
        except UnknownFunctionError:
            continue
    return False


def check_solved(
    solved: Mapping[str, Any],
    wanted: Mapping[str, Any],
    derived: Mapping[str, Any],
    papers: Sequence[Mapping[str, Any]],
) -> bool:
    """Check that weights over cells of overlapping releases give each group exactly; return whether they may not.

    Theorem (Solved again). For every combination of the listed values of columns, the weights of the cells that hold
    rows with these values add up to one for the group of these rows, and to zero for every other group.
    Assumes  each row has the values of one listed combination, or such as no condition and no key tells from it; rows
             are units, so that no bound leaves one out.
    Tested   tests/audit/test_receipt_atoms.py::test_every_planted_error_in_overlapping_releases_is_found
    """
    if any(each["measured"]["bounds"] is not None for each in papers):
        raise ReceiptError("Releases that leave out rows of a unit cannot be combined over cells.")
    if any(each["measured"].get("shared", False) for each in papers):
        raise ReceiptError("Releases whose sums have draws in common cannot be combined over cells.")
    shares = [_shares(row, wanted, papers) for row in solved["rows"]]
    finders = {
        (source, part): cell_finder(papers[source]["measured"]["where"], papers[source]["measured"]["sets"][part])
        for source, part in sorted({(source, part) for row in shares for source, part, _ in row})
    }
    find = cell_finder(derived["where"], derived["groups"])
    try:
        seen = {(find(known), *(each(known) for each in finders.values())) for known in combinations(solved["columns"])}
    except UnknownFunctionError:
        return True
    for group, *cells in seen:
        for number, row in enumerate(shares):
            parts = (row.get((*each, cell), Fraction(0)) for each, cell in zip(finders, cells, strict=True))
            if sum(parts, Fraction(0)) != (number == group):
                raise ReceiptError("The weights of a group do not add up to its rows.")
    return False


def _shares(
    row: Sequence[Sequence[Any]], wanted: Mapping[str, Any], papers: Sequence[Mapping[str, Any]]
) -> dict[tuple[int, int, int], Fraction]:
    """Return what a group takes of each cell of each grouping set of the sources."""
    total: dict[tuple[int, int, int], Fraction] = {}
    moved: dict[tuple[int, int, int], Fraction] = {}
    for source, place, cell, weight in row:
        measured = papers[source]["measured"]
        if not place < len(measured["measures"]):
            raise ReceiptError("A term is of no sum of its source.")
        share, shift = _share(measured["measures"][place], wanted, Fraction(weight))
        part, rest = 0, cell
        while part < len(measured["sets"]) and rest >= _size(measured["sets"][part]):
            rest -= _size(measured["sets"][part])
            part += 1
        if part == len(measured["sets"]):
            raise ReceiptError("A term is of no cell of its source.")
        total[source, part, rest] = total.get((source, part, rest), Fraction(0)) + share
        moved[source, part, rest] = moved.get((source, part, rest), Fraction(0)) + shift
    if any(moved.values()):
        raise ReceiptError("The weights of a sum do not add up to one.")
    return total


def _share(form: Mapping[str, Any], wanted: Mapping[str, Any], weight: Fraction) -> tuple[Fraction, Fraction]:
    """Return how much of what is wanted a weighted sum is, and how far it moves the center."""
    if form == wanted and wanted["kind"] != "sum":
        return weight, Fraction(0)
    if form["kind"] == "sum" == wanted["kind"] and _bare(form) == _bare(wanted):
        share = weight * Fraction(wanted["step"]) / Fraction(form["step"])
        centers = [[Fraction(term["center"]) for term in each["terms"]] for each in (form, wanted)]
        if centers[0] == centers[1]:
            return share, Fraction(0)
        if len(centers[0]) != 1:
            raise ReceiptError("A product about other centers is another sum.")
        return share, share * (centers[0][0] - centers[1][0])
    counts = {"kind": "rows", "present": wanted.get("present"), "where": wanted["where"]}
    if form == counts and wanted["kind"] == "sum":
        return Fraction(0), -weight * Fraction(wanted["step"])
    raise ReceiptError("A term measures something else than the answer.")


def _check_weights(
    wanted: Mapping[str, Any],
    terms: Sequence[Sequence[Any]],
    derived: Mapping[str, Any],
    papers: Sequence[Mapping[str, Any]],
) -> None:
    """Check that every term measures what is wanted, and that the weights add up to one."""
    total, moved = Fraction(0), Fraction(0)
    for place, at, weight in terms:
        view = derived["views"][place]
        measures = papers[view["source"]]["measured"]["measures"]
        if not at < len(measures):
            raise ReceiptError("A term is of no sum of its source.")
        if wanted["kind"] not in ("rows", "sum") and any(view["cells"].count(g) > 1 for g in set(view["cells"]) - {-1}):
            raise ReceiptError("Units and different values cannot be added up over cells.")
        share, shift = _share(measures[at], wanted, Fraction(weight))
        total, moved = total + share, moved + shift
    if total != 1 or moved:
        raise ReceiptError("The weights of a sum do not add up to one.")


def _bare(form: Mapping[str, Any]) -> tuple[object, ...]:
    terms = [term["of"] for term in form["terms"]]
    return terms, form["present"], form["where"], form["offset"]


def _cells(form: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """List the places of the values of every cell."""
    cells = list(product(*(range(len(key["values"]) + key["null"]) for key in form["keys"])))
    return [cells[number] for number in form["kept"]] if "kept" in form else cells


def _size(form: Mapping[str, Any]) -> int:
    if "kept" in form:
        return len(form["kept"])
    size = 1
    for key in form["keys"]:
        size *= len(key["values"]) + key["null"]
    return size
