"""Check a receipt independently: derive the privacy loss of a release again from the facts in its receipt.

This file imports nothing from the rest of hubbub. It reads like a proof by hand: what one privacy unit can contribute
to the sums, the noise on each, the loss of each, the total loss. `receipt_format` checks the value of each field; it
imports nothing from the rest of hubbub either.

Receipts are not signed: anyone who changes an answer can hash it again. Only the ledger shows that (`ledger_check`).
"""

import json
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cache
from hashlib import sha256
from math import isqrt, lcm
from typing import Any

from hubbub.audit import receipt_format as form

_UP = Context(prec=50, rounding=ROUND_CEILING)
_DOWN = Context(prec=50, rounding=ROUND_FLOOR)
#: π from below, to 50 digits.
_PI = Fraction("3.1415926535897932384626433832795028841971693993751")
_LARGEST_VARIANCE = Fraction(10**10)
#: Fields that a server adds to a release: they describe the request, not the release.
_BESIDE = {"epsilon", "delta", "left", "replayed", "left_out", "notes", "intervals"}


@dataclass
class ReceiptCheck:
    """The result of a check: the derivation, line by line, and the problems."""

    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    loss: str = ""

    @property
    def sound(self) -> bool:
        """Whether every claim of the receipt was derived."""
        return not self.problems


class _ReceiptError(Exception):
    """A claim of the receipt is wrong; the text says which."""


@dataclass(frozen=True)
class _Loss:
    """Pure ε (None if there is none), ρ of zero-concentrated DP, δ, and ε and ρ of those draws that have a pure ε."""

    pure: Fraction | None
    rho: Fraction
    delta: Fraction = Fraction(0)
    part: tuple[Fraction, Fraction] | None = None

    @property
    def pure_part(self) -> tuple[Fraction, Fraction]:
        """ε and ρ of the draws that have a pure ε."""
        if self.part is not None:
            return self.part
        return (Fraction(0), Fraction(0)) if self.pure is None else (self.pure, self.rho)

    def divergence(self, order: Fraction) -> Fraction:
        """Bound the Rényi divergence: ρα, but at most ε for draws with a pure ε."""
        epsilon, rho = self.pure_part
        return min(epsilon, rho * order) + (self.rho - rho) * order

    def __add__(self, other: "_Loss") -> "_Loss":
        pure = None if self.pure is None or other.pure is None else self.pure + other.pure
        (one, two), (three, four) = self.pure_part, other.pure_part
        return _Loss(pure, self.rho + other.rho, self.delta + other.delta, (one + three, two + four))

    def times(self, count: int) -> "_Loss":
        """Return the loss of `count` repetitions."""
        epsilon, rho = self.pure_part
        pure = None if self.pure is None else self.pure * count
        return _Loss(pure, self.rho * count, self.delta * count, (epsilon * count, rho * count))


#: (cells, cells that one unit reaches, rows in each, rows in all of them) of a grouping set; cells is None if they are
#: not known in advance.
CellReach = tuple[int | None, int, int, int]
#: The loss of a draw, and its events with their counts in the charge.
DrawLoss = tuple[_Loss, list[tuple[dict[str, Any], int]]]


def check_receipt(document: object) -> ReceiptCheck:
    """Check a receipt, alone or in the file of a release."""
    result = ReceiptCheck()
    try:
        paper, answer = split_document(document)
        form.check_receipt(paper)
        _check(paper, result)
        if answer is not None:
            form.check_answer(answer)
            _check_answer(paper, answer, result)
    except (_ReceiptError, form.FormatError) as wrong:
        result.problems.append(str(wrong))
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, IndexError, RecursionError) as error:
        # without the message, which may quote input of any length
        result.problems.append(f"The receipt is malformed ({type(error).__name__}).")
    return result


def split_document(document: object) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the receipt and, if the document has one, the answer."""
    if not isinstance(document, dict):
        raise _ReceiptError("The document is not a JSON object.")
    inside = document.get("receipt")
    if not isinstance(inside, dict):
        return document, None
    if not {"answer", "receipt"} <= document.keys() <= {"answer", "receipt"} | _BESIDE:
        raise _ReceiptError("The document has other fields than a release: answer and receipt.")
    for name in ("epsilon", "delta"):
        if name in document and document[name] != inside.get("charge", {}).get(name):
            raise _ReceiptError(f"{name} of the release differs from the charge in the receipt.")
    return inside, document["answer"]


def _check(paper: dict[str, Any], result: ReceiptCheck) -> None:
    units = ", ".join(f"{data['unit']} of {data['dataset']} (version {data['version']})" for data in paper["data"])
    result.lines.append(f"privacy unit: {units}; neighboring relation: {paper['relation']}")
    derive = _check_analysis if "analysis" in paper else _check_query
    derive(paper, result)
    for entry in paper["ledger"]:
        result.lines.append(f"charge {entry['sequence']} of the ledger on {entry['dataset']}: {entry['hash'][:16]}…")
    read, charged = ([item["dataset"] for item in paper[name]] for name in ("data", "ledger"))
    if sorted(read) != sorted(charged) or len(set(read)) != len(read):
        raise _ReceiptError("Some dataset was not charged exactly once.")
    if len({entry["sequence"] for entry in paper["ledger"]}) != len(charged):
        raise _ReceiptError("Two charges have the same number.")


def _check_analysis(paper: dict[str, Any], result: ReceiptCheck) -> None:
    """Derive the loss from the facts of the mechanisms; the receipt does not show why their sensitivity holds."""
    result.lines.append(f"analysis {paper['analysis']}: {len(paper['event']['parts'])} kinds of draws")
    if "session" in paper:
        result.lines.append(f"an answer of the session of charge {paper['session']}, which paid for it")
    losses = []
    for event, count in paper["event"]["parts"]:
        if event.get("monotone") is True and paper["relation"] == "replace":
            raise _ReceiptError("The receipt states that all scores move one way, and a replaced unit moves both ways.")
        loss = _stated_loss(_facts(event))
        result.lines.append(f"{count} × {event['mechanism']}: {_show(loss)} each")
        losses.append(loss.times(_positive(count)))
    _check_total(losses, paper["charge"], result)


def _stated_loss(facts: dict[str, Any]) -> _Loss:
    """Return the loss of one mechanism at the sensitivity that it states."""
    match facts["mechanism"]:
        case "laplace":
            epsilon = facts["sensitivity"] / _above_zero(facts["scale"])
            return _Loss(epsilon, epsilon * epsilon / 2)
        case "gaussian":
            return _Loss(None, facts["sensitivity_squared"] / (2 * _above_zero(facts["variance"])))
        case "response":
            loss = _above_zero(facts["epsilon"])
            return _Loss(loss, loss * loss / 2)
        case "selection":
            return _selection_loss(facts)
        case "metric":
            # if all points see the same distances, the normalizer is constant and costs nothing
            alike = facts["constant_normaliser"] is True
            loss = facts["rate"] * Fraction(facts["sensitivity"]) * (1 if alike else 2)
            return _Loss(loss, loss * loss / (2 if alike else 8))
        case "flips":
            loss = facts["rate"] * _positive(facts["distance"])
            return _Loss(loss, loss * loss / 2)
        case "smooth":
            # near the value the noise moves and widens; far out it only widens
            power, widens = _positive(facts["power"]), _above_zero(facts["dilation"])
            loss = max((power + 1) * _above_zero(facts["slide"]) + widens, power * widens)
            return _Loss(loss, loss * loss / 2)
        case "proposal":
            test, answer = (_facts(facts[name]) for name in ("test", "answer"))
            both = _stated_loss(test) + _stated_loss(answer)
            delta = _laplace_tail(_positive(facts["margin"]), test["scale"])
            return _Loss(both.pure, both.rho, delta)
        case "sparsevector" | "binomial":
            return _session_or_coins(facts)
    raise _ReceiptError(f"Unknown mechanism {facts['mechanism']!r}.")


def _session_or_coins(facts: dict[str, Any]) -> _Loss:
    """Return the loss of the sparse vector technique, or of the heads among fair coins."""
    moved = _positive(facts["sensitivity"])
    if facts["mechanism"] == "binomial":
        loss = _above_zero(facts["epsilon"])
        return _Loss(loss, loss * loss / 2, _coins_delta(facts["coins"], moved, loss))
    # every answer that is above costs: once for the value, and once for the threshold unless all move one way
    above = moved * _positive(facts["hits"]) * (1 if facts["monotone"] is True else 2)
    loss = moved / _above_zero(facts["threshold_scale"]) + above / _above_zero(facts["query_scale"])
    return _Loss(loss, loss * loss / 2)


def _check_query(paper: dict[str, Any], result: ReceiptCheck) -> None:
    """Derive the sensitivity of each sum from the contribution bounds, and from it the loss."""
    reaches = _reaches(paper)
    if paper["bounds"] is not None and "auto" in paper["bounds"]:
        result.lines.append("the query finds its contribution bounds; everything is in multiples of them")
    for cells, touched, rows, total in reaches:
        extent = "all existing groups" if cells is None else f"{cells} cells"
        more = f" and {total} in all of them" if total < touched * rows else ""
        result.lines.append(f"one unit reaches {touched} of {extent}, with {rows} rows in each{more}")
    losses, events = [], []
    public = [draw for draw in paper["draws"] if draw["kind"] == "public"]
    if public and paper["bounds"] is not None:
        raise _ReceiptError("A count of rows is public only where each row is its own unit.")
    if bool(public) != ("rows" in paper) or len(public) > 1:
        raise _ReceiptError("The public number of rows is stated if it was used, once, and only then.")
    if public:
        result.lines.append(f"{paper['rows']} rows, which is public: neighbors have as many")
    for draw in paper["draws"]:
        loss, charged = _draw(draw, reaches, paper["relation"])
        losses.append(loss)
        events += charged
        result.lines.append(f"{draw['what']}: {_show(loss)}")
    stated = [(_facts(event), _positive(count)) for event, count in paper["event"]["parts"]]
    if _runs(stated) != _runs(events):
        raise _ReceiptError("The charged event does not match the draws.")
    kinds = [draw["kind"] for draw in paper["draws"]]
    thresholds = kinds.count("threshold") + kinds.count("weights")
    if thresholds != (None in paper["cells"]):
        raise _ReceiptError("A threshold is required for groups that are not known in advance, and only for them.")
    _check_levels(paper)
    _check_total(losses, paper["charge"], result)


def _check_levels(paper: dict[str, Any]) -> None:
    """Check that bounds that are said to be found were found: in multiples of a bound, noise covers anything.

    A unit is at most once in a group, and gives its vote to one group, so neither needs a bound.
    """
    auto = paper["bounds"] is not None and "auto" in paper["bounds"]
    kinds = [draw["kind"] for draw in paper["draws"]]
    bounded = [
        draw["kind"] in ("threshold", "selection", "top")
        or (draw["kind"] == "sum" and (draw["per"] == "row" or paper["cells"] != [1] * len(paper["cells"])))
        for draw in paper["draws"]
    ]
    if auto and any(bounded) and "levels" not in kinds:
        raise _ReceiptError("The contribution bounds are said to be found, and no draw finds them.")
    if "levels" in kinds and "rest" not in kinds and not (auto and any(bounded)):
        raise _ReceiptError("A draw finds contribution bounds that no other draw needs.")


def _runs(events: list[tuple[dict[str, Any], int]]) -> list[tuple[dict[str, Any], int]]:
    """Merge equal consecutive events: a count may be written once or in parts."""
    joined: list[tuple[dict[str, Any], int]] = []
    for event, count in events:
        before = joined.pop() if joined and joined[-1][0] == event else (event, 0)
        joined.append((event, before[1] + count))
    return joined


def _reaches(paper: dict[str, Any]) -> list[CellReach]:
    bounds = paper["bounds"]
    by_row = all(data["unit"] == "row" for data in paper["data"])
    if (bounds is None) != by_row:
        raise _ReceiptError("Contribution bounds are required for units with several rows, and only for them.")
    # where bounds are found by the query, everything is in multiples of the bound
    found = bounds is not None and "auto" in bounds
    groups, rows = (1, 1) if bounds is None or found else (_positive(bounds["groups"]), _positive(bounds["rows"]))
    sizes = [None if size is None else _positive(size) for size in paper["cells"]]
    most = _positive(bounds["total"]) if bounds is not None and "total" in bounds else groups * rows
    touched = [groups if size is None else min(groups, size) for size in sizes]
    return [(size, reach, rows, min(most, reach * rows)) for size, reach in zip(sizes, touched, strict=True)]


def _draw(draw: dict[str, Any], reaches: list[CellReach], relation: str) -> DrawLoss:
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
    }
    return kinds[draw["kind"]](draw, reaches, relation)


def _public(draw: dict[str, Any], reaches: list[CellReach], relation: str) -> DrawLoss:
    """Count all rows of a table in which each row is a unit: replacing one changes nothing."""
    if relation != "replace" or reaches != [(1, 1, 1, 1)]:
        raise _ReceiptError(f"{draw['what']}: a count is public only over a whole table, where one row is replaced.")
    return _Loss(Fraction(0), Fraction(0)), []


def _levels(draw: dict[str, Any], reaches: list[CellReach], relation: str) -> DrawLoss:
    """Count units by level of contribution: each is at one level."""
    del reaches
    noise, moved = _facts(draw["noise"]), 2 if relation == "replace" else 1
    return _noise_of(noise, draw["what"], moved, moved * moved), [(noise, 1)]


def _rest(draw: dict[str, Any], reaches: list[CellReach], relation: str) -> DrawLoss:
    """Any mechanism of pure loss ε, as noise of sensitivity 1: the receipt does not show why its loss holds."""
    del reaches, relation
    noise = _facts(draw["noise"])
    if noise["mechanism"] != "laplace":
        raise _ReceiptError(f"{draw['what']}: the loss is not pure.")
    return _noise_of(noise, draw["what"], 1, 1), [(noise, 1)]


def _sum(draw: dict[str, Any], reaches: list[CellReach], relation: str) -> DrawLoss:
    """Noise on sums over cells: bound the L1 and squared L2 sensitivity, cell by cell."""
    noise = _facts(draw["noise"])
    return _noise(noise, draw, reaches, relation), [(noise, 1)]


def _noise(noise: dict[str, Any], draw: dict[str, Any], reaches: list[CellReach], relation: str) -> _Loss:
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


def _noise_of(noise: dict[str, Any], what: str, l1: int, squared: int) -> _Loss:
    """Return the loss of the noise on a vector of these sensitivities."""
    if noise["mechanism"] == "laplace":
        if noise["sensitivity"] < l1:
            raise _ReceiptError(f"{what}: the sensitivity is {l1}; the receipt states {noise['sensitivity']}.")
        epsilon = noise["sensitivity"] / _above_zero(noise["scale"])
        return _Loss(epsilon, epsilon * epsilon / 2)
    if noise["mechanism"] == "gaussian":
        if noise["sensitivity_squared"] < squared:
            raise _ReceiptError(f"{what}: the squared sensitivity is {squared}; the receipt states less.")
        return _Loss(None, noise["sensitivity_squared"] / (2 * _above_zero(noise["variance"])))
    raise _ReceiptError(f"{what}: unknown noise {noise['mechanism']!r}.")


def _threshold(draw: dict[str, Any], reaches: list[CellReach], relation: str) -> DrawLoss:
    """Partition selection: show a key if its noisy number of units reaches a threshold; bound δ for one unit's keys."""
    facts = _facts(draw["noise"])
    noise = _facts(facts["noise"])
    loss = _noise(noise, draw, reaches, relation)
    if draw["per"] != "unit" or draw["adds"] != [0, 1]:
        raise _ReceiptError(f"{draw['what']}: partition selection needs counts of units.")
    (touched,) = [touched for _, touched, _, _ in reaches]
    above = _positive(draw["threshold"]) - 1
    if _positive(facts["keys"]) < touched or _positive(facts["above"]) > above:
        raise _ReceiptError(f"{draw['what']}: a key of one unit is shown more often than the receipt states.")
    # use the stated facts, which were charged: they may overstate the loss, never understate it
    least, keys = facts["above"], facts["keys"]
    slip = _laplace_tail(least, noise["scale"]) if noise["mechanism"] == "laplace" else _gaussian_tail(least, noise)
    # 1 − (1 − p)^k, rounded up: none of the k keys of one unit may be shown
    delta = 1 - _exp(keys * _ln(1 - slip, _DOWN), _DOWN)
    return _Loss(loss.pure, loss.rho, delta), [(facts, 1)]


def _weights(draw: dict[str, Any], reaches: list[CellReach], relation: str) -> DrawLoss:
    """Partition selection by weights: a unit gives each of n ≤ keys groups of its choice the weight ⌊weight/√n⌋."""
    del reaches  # a unit chooses among all of its groups
    facts, keys, weight = _facts(draw["noise"]), _positive(draw["keys"]), _positive(draw["weight"])
    noise, units = _facts(facts["noise"]), 2 if relation == "replace" else 1
    loss = _noise_of(noise, draw["what"], isqrt(weight * weight * keys) * units, weight * weight * units)
    slips = []
    for own in range(1, keys + 1):
        # n keys of one unit alone; the chance that any is shown is at most n times that of one
        least = _positive(draw["threshold"]) - isqrt(weight * weight // own)
        is_laplace = noise["mechanism"] == "laplace"
        slips.append(own * (_laplace_tail(least, noise["scale"]) if is_laplace else _wide_tail(least, noise)))
    stated = (facts["keys"], facts["above"]) if keys == 1 else (facts["keys"], facts["weight"], facts["threshold"])
    if stated != ((1, draw["threshold"] - weight) if keys == 1 else (keys, weight, draw["threshold"])):
        raise _ReceiptError(f"{draw['what']}: the event states other weights than the draw.")
    return _Loss(loss.pure, loss.rho, max(slips)), [(facts, 1)]


def _wide_tail(least: int, noise: dict[str, Any]) -> Fraction:
    """Bound Pr[Z ≥ least], Pr[z] ∝ exp(−z²/2σ²), where least > σ: by the normal tail from least − ½ on.

    Beyond σ the density is convex, so each term is at most its integral from z − ½ to z + ½. The ratio of tail and
    density is cut off after an even number of steps of Laplace's continued fraction, which bounds it from above.
    """
    variance = _above_zero(noise["variance"])
    deviation = Fraction(_UP.sqrt(_decimal(variance, _UP)))
    x = (Fraction(least) - Fraction(1, 2)) / deviation
    if not x > 1:
        raise _ReceiptError("The threshold is so low that one unit passes it.")
    ratio = (x**4 + 9 * x**2 + 8) / (x**5 + 10 * x**3 + 15 * x)
    return ratio * _exp(-x * x / 2, _UP) / Fraction(_DOWN.sqrt(_decimal(2 * _PI, _DOWN)))


def _coins_delta(coins: int, moved: int, epsilon: Fraction) -> Fraction:
    """Bound Σ max(0, Pr[k] − e^ε·Pr[k − moved]) over the number k of heads, by whole numbers up to 2^coins."""
    least = _exp(epsilon, _DOWN)
    top, bottom = least.numerator, least.denominator
    excess, here, there = 0, 1, [0] * moved  # C(N, k), and C(N, j) for j = k − moved, …, k − 1
    for heads in range(coins + 1):
        before = there[heads % moved]
        if not here * bottom > top * before:
            break  # the ratio only falls from here
        excess += here * bottom - top * before
        there[heads % moved] = here
        here = here * (coins - heads) // (heads + 1)
    return Fraction(excess, bottom << coins)


def _laplace_tail(least: int, scale: Fraction) -> Fraction:
    """Bound Pr[Z ≥ least] = qˡ/(1 + q), with q = exp(−1/scale) and least ≥ 0."""
    if least < 0:
        raise _ReceiptError("The threshold is so low that one unit passes it.")
    return _exp(-least / scale, _UP) / (1 + _exp(-1 / scale, _DOWN))


def _gaussian_tail(least: int, noise: dict[str, Any]) -> Fraction:
    """Bound Pr[Z ≥ least], Pr[z] ∝ exp(−z²/2σ²): sum the terms, and bound the rest by a geometric series."""
    if least < 1:
        raise _ReceiptError("The threshold is so low that one unit passes it.")
    variance = _above_zero(noise["variance"])
    if variance > _LARGEST_VARIANCE:
        raise _ReceiptError("The variance is too large for this checker.")
    term = _decimal(_exp(-Fraction(least * least) / (2 * variance), _UP), _UP)
    ratio = _decimal(_exp(-Fraction(2 * least + 1) / (2 * variance), _UP), _UP)
    fall = _decimal(_exp(-1 / variance, _UP), _UP)
    tail, small = Decimal(0), term.scaleb(-40)
    while term > small:
        tail = _UP.add(tail, term)
        term, ratio = _UP.multiply(term, ratio), _UP.multiply(ratio, fall)
    tail = _UP.add(tail, _UP.divide(term, _DOWN.subtract(Decimal(1), ratio)))
    return Fraction(tail) / _normalizer(variance)


def _normalizer(variance: Fraction) -> Fraction:
    """Bound Σ exp(−z²/2σ²) over all integers from below: it is √(2πσ²) times at least 1 + 2·exp(−2π²σ²)."""
    if variance > 16:
        return Fraction(_DOWN.sqrt(_decimal(2 * _PI * variance, _DOWN)))
    return 1 + 2 * sum((_exp(-Fraction(z * z) / (2 * variance), _DOWN) for z in range(1, 80)), Fraction(0))


def _selection(draw: dict[str, Any], reaches: list[CellReach], relation: str) -> DrawLoss:
    """One selection per cell: the losses of the cells that one unit reaches add up."""
    # full cells cost at least as much as the same rows in more cells
    times = sum(min(touched, -(-total // rows)) for _, touched, rows, total in reaches)
    moved = _moves(draw) * max(rows for _, _, rows, _ in reaches) * (2 if relation == "replace" else 1)
    one_way = draw["kind"] == "selection" and draw["score"] == "mode" and relation == "add_remove"
    total, events = _Loss(Fraction(0), Fraction(0)), []
    for pick in draw["picks"]:
        facts = _facts(pick)
        total += _pick(facts, draw["what"], moved, one_way=one_way).times(times)
        events.append((facts, times))
    return total, events


def _top(draw: dict[str, Any], reaches: list[CellReach], relation: str) -> DrawLoss:
    """Select the largest counts one after the other: a unit may contribute to all of them, to each at most its rows."""
    moved = 1 if draw["per"] == "unit" else max(rows for _, _, rows, _ in reaches)
    total, events = _Loss(Fraction(0), Fraction(0)), []
    for pick in draw["picks"]:
        facts = _facts(pick)
        total += _pick(facts, draw["what"], moved, one_way=relation == "add_remove")
        events.append((facts, 1))
    return total, events


def _pick(facts: dict[str, Any], what: str, moved: int, *, one_way: bool) -> _Loss:
    if facts["mechanism"] != "selection":
        raise _ReceiptError(f"{what}: unknown selection mechanism.")
    if facts["sensitivity"] < moved:
        raise _ReceiptError(
            f"{what}: the sensitivity of the scores is {moved}; the receipt states {facts['sensitivity']}."
        )
    if facts["monotone"] and not one_way:
        raise _ReceiptError(f"{what}: the receipt states that the scores are monotone, and they are not.")
    return _selection_loss(facts)


def _selection_loss(facts: dict[str, Any]) -> _Loss:
    """Return the loss of one selection; only the exponential mechanism has bounded range (Cesar and Rogers 2021)."""
    loss = facts["rate"] * facts["sensitivity"] * (1 if facts["monotone"] else 2)
    return _Loss(loss, loss * loss / (8 if facts["rule"] == "exponential" else 2))


def _moves(draw: dict[str, Any]) -> int:
    """Return the sensitivity of a score to one row: a quantile a/b weighs rows by b − a or a, the others count rows."""
    if draw["kind"] == "quantiles":
        # each score is multiplied so that all move equally far
        return lcm(*(_quantile_moves(Fraction(level)) for level in draw["levels"]))
    if draw["score"] == "quantile":
        return _quantile_moves(Fraction(draw["level"]))
    if draw["score"] in ("min", "max", "mode"):
        return 1
    raise _ReceiptError(f"Unknown score {draw['score']!r}.")


def _quantile_moves(level: Fraction) -> int:
    return max(level.numerator, level.denominator - level.numerator)


def _check_total(losses: list[_Loss], charge: dict[str, str], result: ReceiptCheck) -> None:
    epsilon, delta = Fraction(charge["epsilon"]), Fraction(charge["delta"])
    total = sum(losses, _Loss(Fraction(0), Fraction(0)))
    if total.pure is not None and total.pure <= epsilon and total.delta <= delta:
        slip = f", δ = {float(total.delta):.3g}" if total.delta else ""
        result.loss = f"ε = {float(total.pure):.6g}{slip} (charged: {float(epsilon):.6g})"
        return
    if not total.delta < delta:
        raise _ReceiptError(f"The draws cost {_show(total)} and δ = {float(total.delta):.3g}; less was charged.")
    implied = _approximate(total, delta - total.delta)
    if implied > epsilon:
        raise _ReceiptError(f"The draws cost ε = {float(implied):.9g} at this δ; ε = {float(epsilon):.9g} was charged.")
    result.loss = f"ε = {float(implied):.6g} at δ = {float(delta):.3g} (charged: {float(epsilon):.6g})"


def _approximate(loss: _Loss, delta: Fraction) -> Fraction:
    """Bound ε at δ: minimum over orders α of D + ln((α−1)/α) − ln(δα)/(α−1) (Canonne, Kamath and Steinke 2020)."""
    low = _ln(delta, _DOWN)
    bounds = (loss.divergence(order) + up - (low + down) / (order - 1) for order, up, down in _orders())
    return max(Fraction(0), min(bounds))


@cache
def _orders() -> list[tuple[Fraction, Fraction, Fraction]]:
    """Return each order α with ln((α−1)/α) from above and ln α from below."""
    orders = [Fraction(n, 8) for n in range(9, 161)] + [Fraction(n) for n in range(21, 2001, 3)]
    return [(order, _ln((order - 1) / order, _UP), _ln(order, _DOWN)) for order in orders]


def _ln(x: Fraction, context: Context) -> Fraction:
    return _outwards(context.ln(_decimal(x, context)), context)


def _exp(x: Fraction, context: Context) -> Fraction:
    return _outwards(context.exp(_decimal(x, context)), context)


def _decimal(x: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(x.numerator), Decimal(x.denominator))


def _outwards(value: Decimal, context: Context) -> Fraction:
    # ln and exp round to nearest whatever the context says, so take one step outwards
    return Fraction(context.next_plus(value) if context is _UP else context.next_minus(value))


def _check_answer(paper: dict[str, Any], answer: dict[str, Any], result: ReceiptCheck) -> None:
    text = json.dumps(answer, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    if sha256(text.encode()).hexdigest() != paper["answer"]:
        raise _ReceiptError("The answer in this file does not match the receipt.")
    result.lines.append("the answer in this file matches the receipt")


def _facts(event: dict[str, Any]) -> dict[str, Any]:
    """Convert the exact numbers of an event from text to fractions."""
    exact = {"scale", "variance", "rate", "epsilon", "slide", "dilation", "threshold_scale", "query_scale"}
    return {key: Fraction(value) if key in exact else value for key, value in event.items()}


def _positive(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _ReceiptError("A size is not a positive integer.")
    return value


def _above_zero(value: Fraction) -> Fraction:
    if not value > 0:
        raise _ReceiptError("The scale of some noise is 0.")
    return value


def _show(loss: _Loss) -> str:
    return f"ρ = {float(loss.rho):.4g}" if loss.pure is None else f"ε = {float(loss.pure):.4g}"
