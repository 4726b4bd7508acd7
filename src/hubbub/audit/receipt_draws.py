"""The loss of each draw of a receipt, derived from its facts: what one privacy unit can change, and the noise on it.

Used by `receipt`. Like the checker, this file imports nothing from the rest of hubbub.
Tested in tests/audit/test_receipt.py.
"""

from dataclasses import replace
from fractions import Fraction
from math import isqrt, lcm
from typing import Any

from hubbub.audit.receipt_loss import (
    Loss,
    ReceiptError,
    above_zero,
    any_of,
    coins_delta,
    gaussian_loss,
    gaussian_tail,
    laplace_tail,
    positive,
    range_loss,
    wide_tail,
)

#: (cells, cells that one unit reaches, rows in each, rows in all of them) of a grouping set; cells is None if they are
#: not known in advance.
CellReach = tuple[int | None, int, int, int]
#: The loss of a draw, and its events with their counts in the charge.
DrawLoss = tuple[Loss, list[tuple[dict[str, Any], int]]]


def exact_facts(event: dict[str, Any]) -> dict[str, Any]:
    """Convert the exact numbers of an event from text to fractions."""
    exact = {"scale", "variance", "rate", "epsilon", "slide", "dilation", "threshold_scale", "query_scale"}
    return {key: Fraction(value) if key in exact else value for key, value in event.items()}


def draw_loss(draw: dict[str, Any], reaches: list[CellReach], relation: str) -> DrawLoss:
    """Return the loss of one draw of a query, and its events."""
    kinds = {
        "public": _public,
        "levels": _levels,
        "rest": _rest,
        "sum": _sum,
        "threshold": _threshold,
        "weights": _weights,
        "selection": _selection,
        "quantiles": _selection,
        "top": _top,
        "bound": _bound,
    }
    return kinds[draw["kind"]](draw, reaches, relation)


def _public(draw: dict[str, Any], reaches: list[CellReach], relation: str) -> DrawLoss:
    """Count all rows of a table in which each row is a unit: replacing one changes nothing."""
    if relation != "replace" or reaches != [(1, 1, 1, 1)]:
        raise ReceiptError(f"{draw['what']}: a count is public only over a whole table, where one row is replaced.")
    return Loss(Fraction(0), Fraction(0)), []


def _levels(draw: dict[str, Any], reaches: list[CellReach], relation: str) -> DrawLoss:
    """Count units by level of contribution: each is at one level."""
    del reaches
    noise, moved = exact_facts(draw["noise"]), 2 if relation == "replace" else 1
    return _noise_of(noise, draw["what"], moved, moved * moved), [(noise, 1)]


def _rest(draw: dict[str, Any], reaches: list[CellReach], relation: str) -> DrawLoss:
    """Any mechanism of pure loss ε, as noise of sensitivity 1: the receipt does not show why its loss holds."""
    del reaches, relation
    noise = exact_facts(draw["noise"])
    if noise["mechanism"] != "laplace":
        raise ReceiptError(f"{draw['what']}: the loss is not pure.")
    return _noise_of(noise, draw["what"], 1, 1), [(noise, 1)]


def _sum(draw: dict[str, Any], reaches: list[CellReach], relation: str) -> DrawLoss:
    """Noise on sums over cells: bound the L1 and squared L2 sensitivity, cell by cell."""
    noise = exact_facts(draw["noise"])
    return _noise(noise, draw, reaches, relation), [(noise, 1)]


def _noise(noise: dict[str, Any], draw: dict[str, Any], reaches: list[CellReach], relation: str) -> Loss:
    low, high = draw["adds"]
    l1 = squared = 0
    for cells, touched, rows, total in reaches:
        many = 1 if draw["per"] == "unit" else rows
        least, most = min(0, low * many), max(0, high * many)
        one = max(most, -least)
        # a unit has as many rows in a cell as it may, until they are used up: convex sums are largest there
        full, rest = divmod(total, many)
        a_row = max(high, -low, 0)
        whole = (min(touched * one, total * a_row), min(touched * one * one, (full * many**2 + rest**2) * a_row**2))
        if relation == "add_remove":
            l1 += whole[0]
            squared += whole[1]
            continue
        # worst case over the k cells that both units reach: k change by most − least, 2(touched − k) others by one
        ends = (0 if cells is None else max(0, 2 * touched - cells), touched)
        both = most - least
        l1 += min(max(k * both + 2 * (touched - k) * one for k in ends), 2 * whole[0])
        # the squares of two vectors without opposite signs add up; else the lengths do
        times = 2 if least == 0 or most == 0 else 4
        squared += min(max(k * both * both + 2 * (touched - k) * one * one for k in ends), times * whole[1])
    return _noise_of(noise, draw["what"], l1, squared)


def _noise_of(noise: dict[str, Any], what: str, l1: int, squared: int) -> Loss:
    """Return the loss of the noise on a vector of these sensitivities."""
    if noise["mechanism"] == "laplace":
        if noise["sensitivity"] < l1:
            raise ReceiptError(f"{what}: the sensitivity is {l1}; the receipt states {noise['sensitivity']}.")
        epsilon = noise["sensitivity"] / above_zero(noise["scale"])
        return Loss(epsilon, epsilon * epsilon / 2)
    if noise["mechanism"] == "gaussian":
        if noise["sensitivity_squared"] < squared:
            raise ReceiptError(f"{what}: the squared sensitivity is {squared}; the receipt states less.")
        return gaussian_loss(Fraction(noise["sensitivity_squared"]), noise["variance"])
    raise ReceiptError(f"{what}: unknown noise {noise['mechanism']!r}.")


def _threshold(draw: dict[str, Any], reaches: list[CellReach], relation: str) -> DrawLoss:
    """Partition selection: show a key if its noisy number of units reaches a threshold; bound δ for one unit's keys."""
    facts = exact_facts(draw["noise"])
    noise = exact_facts(facts["noise"])
    loss = _noise(noise, draw, reaches, relation)
    if draw["per"] != "unit" or draw["adds"] != [0, 1]:
        raise ReceiptError(f"{draw['what']}: partition selection needs counts of units.")
    (touched,) = [touched for _, touched, _, _ in reaches]
    above = positive(draw["threshold"]) - 1
    if positive(facts["keys"]) < touched or positive(facts["above"]) > above:
        raise ReceiptError(f"{draw['what']}: a key of one unit is shown more often than the receipt states.")
    # use the stated facts, which were charged: they may overstate the loss, never understate it
    least, keys = facts["above"], facts["keys"]
    slip = laplace_tail(least, noise["scale"]) if noise["mechanism"] == "laplace" else gaussian_tail(least, noise)
    return replace(loss, delta=any_of(keys, slip)), [(facts, 1)]


def _weights(draw: dict[str, Any], reaches: list[CellReach], relation: str) -> DrawLoss:
    """Partition selection by weights: a unit gives each of n ≤ keys groups of its choice the weight ⌊weight/√n⌋."""
    del reaches  # a unit chooses among all of its groups
    facts, keys, weight = exact_facts(draw["noise"]), positive(draw["keys"]), positive(draw["weight"])
    noise, units = exact_facts(facts["noise"]), 2 if relation == "replace" else 1
    loss = _noise_of(noise, draw["what"], isqrt(weight * weight * keys) * units, weight * weight * units)
    slips = []
    for own in range(1, keys + 1):
        # n keys of one unit alone; the chance that any is shown is at most n times that of one
        least = positive(draw["threshold"]) - isqrt(weight * weight // own)
        is_laplace = noise["mechanism"] == "laplace"
        slips.append(own * (laplace_tail(least, noise["scale"]) if is_laplace else wide_tail(least, noise)))
    stated = (facts["keys"], facts["above"]) if keys == 1 else (facts["keys"], facts["weight"], facts["threshold"])
    if stated != ((1, draw["threshold"] - weight) if keys == 1 else (keys, weight, draw["threshold"])):
        raise ReceiptError(f"{draw['what']}: the event states other weights than the draw.")
    return replace(loss, delta=max(slips)), [(facts, 1)]


def _selection(draw: dict[str, Any], reaches: list[CellReach], relation: str) -> DrawLoss:
    """One selection per cell: the losses of the cells that one unit reaches add up."""
    # full cells cost at least as much as the same rows in more cells
    times = sum(min(touched, -(-total // rows)) for _, touched, rows, total in reaches)
    alone = [size for size, *_ in reaches] == [1]
    moved = max(rows for _, _, rows, _ in reaches)
    moved *= _replaced(draw, alone=alone) if relation == "replace" else _moves(draw)
    one_way = draw["kind"] == "selection" and draw["score"] == "mode" and relation == "add_remove"
    total, events = Loss(Fraction(0), Fraction(0)), []
    for pick in draw["picks"]:
        facts = exact_facts(pick)
        total += _pick(facts, draw["what"], moved, one_way=one_way).times(times)
        events.append((facts, times))
    return total, events


def _top(draw: dict[str, Any], reaches: list[CellReach], relation: str) -> DrawLoss:
    """Select the largest counts one after the other: a unit may contribute to all of them, to each at most its rows."""
    moved = 1 if draw["per"] == "unit" else max(rows for _, _, rows, _ in reaches)
    total, events = Loss(Fraction(0), Fraction(0)), []
    for pick in draw["picks"]:
        facts = exact_facts(pick)
        total += _pick(facts, draw["what"], moved, one_way=relation == "add_remove")
        events.append((facts, 1))
    return total, events


def _bound(draw: dict[str, Any], reaches: list[CellReach], relation: str) -> DrawLoss:
    """Choose how much of one owner counts: scores are in parts of what one owner can change, twice that if replaced."""
    del reaches
    moved = positive(draw["parts"]) * (2 if relation == "replace" else 1)
    (facts,) = [exact_facts(pick) for pick in draw["picks"]]
    return _pick(facts, draw["what"], moved, one_way=False), [(facts, 1)]


def _pick(facts: dict[str, Any], what: str, moved: int, *, one_way: bool) -> Loss:
    if facts["mechanism"] != "selection":
        raise ReceiptError(f"{what}: unknown selection mechanism.")
    if facts["sensitivity"] < moved:
        raise ReceiptError(
            f"{what}: the sensitivity of the scores is {moved}; the receipt states {facts['sensitivity']}."
        )
    if facts["monotone"] and not one_way:
        raise ReceiptError(f"{what}: the receipt states that the scores are monotone, and they are not.")
    return _selection_loss(facts)


def _selection_loss(facts: dict[str, Any]) -> Loss:
    """Return the loss of one selection; only the exponential mechanism has bounded range (Cesar and Rogers 2021)."""
    loss = facts["rate"] * facts["sensitivity"] * (1 if facts["monotone"] else 2)
    return range_loss(loss) if facts["rule"] == "exponential" else Loss(loss, loss * loss / 2)


def _moves(draw: dict[str, Any]) -> int:
    """Return the sensitivity of a score to one row: a quantile a/b weighs rows by b − a or a, the others count rows."""
    if draw["kind"] == "quantiles":
        # each score is multiplied so that all move equally far
        return lcm(*(_quantile_moves(Fraction(level)) for level in draw["levels"]))
    if draw["score"] == "quantile":
        return _quantile_moves(Fraction(draw["level"]))
    if draw["score"] in ("min", "max", "mode"):
        return 1
    raise ReceiptError(f"Unknown score {draw['score']!r}.")


def _replaced(draw: dict[str, Any], *, alone: bool) -> int:
    """Return what scores of a cell count as moving when a row takes the place of another.

    One count of `mode` falls and another rises, by one. In a cell that is alone, so do the counts of `min` and `max`,
    and a quantile a/b moves by a and b − a. Two cells that lose or gain a row cost as much as one that
    moves twice.
    """
    if draw["kind"] != "quantiles" and draw["score"] == "mode":
        return 1
    if not alone:
        return 2 * _moves(draw)
    if draw["kind"] != "quantiles" and draw["score"] != "quantile":
        return _moves(draw)
    common, levels = _moves(draw), draw["levels"] if draw["kind"] == "quantiles" else [draw["level"]]
    return max(Fraction(level).denominator * (common // _quantile_moves(Fraction(level))) for level in levels)


def _quantile_moves(level: Fraction) -> int:
    return max(level.numerator, level.denominator - level.numerator)


def stated_loss(facts: dict[str, Any]) -> Loss:
    """Return the loss of one mechanism at the sensitivity that it states."""
    match facts["mechanism"]:
        case "laplace":
            epsilon = facts["sensitivity"] / above_zero(facts["scale"])
            return Loss(epsilon, epsilon * epsilon / 2)
        case "gaussian":
            return gaussian_loss(Fraction(facts["sensitivity_squared"]), facts["variance"])
        case "response":
            loss = above_zero(facts["epsilon"])
            return Loss(loss, loss * loss / 2)
        case "selection":
            return _selection_loss(facts)
        case "metric":
            # if all points see the same distances, the normalizer is constant and costs nothing
            alike = facts["constant_normaliser"] is True
            loss = facts["rate"] * Fraction(facts["sensitivity"]) * (1 if alike else 2)
            return Loss(loss, loss * loss / 2) if alike else range_loss(loss)
        case "flips":
            loss = facts["rate"] * positive(facts["distance"])
            return Loss(loss, loss * loss / 2)
        case "smooth":
            # near the value the noise moves and widens; far out it only widens
            power, widens = positive(facts["power"]), above_zero(facts["dilation"])
            loss = max((power + 1) * above_zero(facts["slide"]) + widens, power * widens)
            return Loss(loss, loss * loss / 2)
        case "proposal":
            test, answer = (exact_facts(facts[name]) for name in ("test", "answer"))
            both = stated_loss(test) + stated_loss(answer)
            delta = laplace_tail(positive(facts["margin"]), test["scale"])
            return Loss(both.pure, both.rho, delta)
        case "sparsevector" | "binomial":
            return _session_or_coins(facts)
    raise ReceiptError(f"Unknown mechanism {facts['mechanism']!r}.")


def _session_or_coins(facts: dict[str, Any]) -> Loss:
    """Return the loss of the sparse vector technique, or of the heads among fair coins."""
    moved = positive(facts["sensitivity"])
    if facts["mechanism"] == "binomial":
        loss = above_zero(facts["epsilon"])
        return Loss(loss, loss * loss / 2, coins_delta(facts["coins"], moved, loss))
    # every answer that is above costs: once for the value, and once for the threshold unless all move one way
    above = moved * positive(facts["hits"]) * (1 if facts["monotone"] is True else 2)
    loss = moved / above_zero(facts["threshold_scale"]) + above / above_zero(facts["query_scale"])
    return Loss(loss, loss * loss / 2)
