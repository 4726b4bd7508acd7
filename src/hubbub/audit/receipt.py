"""An independent check of a receipt: the loss of a release, derived again from the facts on paper.

This file imports nothing of the planner, the mechanisms or the accountant, and reads like the argument that one would
write by hand: what one unit can add to the sums, the noise on each, the loss of each, the loss of all. Beside it,
`receipt_form` says which values each field can have; it imports nothing of the product either.

A receipt is not signed: anyone who changes an answer can hash it again. Only a ledger shows that (`ledger_check`).
"""

import json
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cache
from hashlib import sha256
from typing import Any

from hubbub.audit import receipt_format as form

_UP = Context(prec=50, rounding=ROUND_CEILING)
_DOWN = Context(prec=50, rounding=ROUND_FLOOR)
#: π from below, to 50 digits.
_PI = Fraction("3.1415926535897932384626433832795028841971693993751")
_LARGEST_VARIANCE = Fraction(10**10)
#: What a server sends beside a release's answer and receipt: about the request, not about the release.
_BESIDE = {"epsilon", "delta", "left", "replayed"}


@dataclass
class Finding:
    """What the check derived, line by line, and what does not hold."""

    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    loss: str = ""

    @property
    def sound(self) -> bool:
        """Whether everything that the receipt claims was derived."""
        return not self.problems


class _WrongError(Exception):
    """The receipt does not hold; the text says where."""


@dataclass(frozen=True)
class _Loss:
    """Pure ε (None where there is none), ρ of zero-concentrated privacy, and δ."""

    pure: Fraction | None
    rho: Fraction
    delta: Fraction = Fraction(0)

    def __add__(self, other: "_Loss") -> "_Loss":
        pure = None if self.pure is None or other.pure is None else self.pure + other.pure
        return _Loss(pure, self.rho + other.rho, self.delta + other.delta)

    def times(self, count: int) -> "_Loss":
        """Give the loss of as many of these."""
        return _Loss(None if self.pure is None else self.pure * count, self.rho * count, self.delta * count)


#: (cells, cells that one unit reaches, rows in each) of a grouping set; None where cells are not known in advance.
Reach = tuple[int | None, int, int]
#: The loss of a draw, and its events: each with how often it stands in the charge.
Drawn = tuple[_Loss, list[tuple[dict[str, Any], int]]]


def check(document: object) -> Finding:
    """Check a receipt, alone or inside the file of a release."""
    found = Finding()
    try:
        paper, answer = parts(document)
        form.receipt(paper)
        _check(paper, found)
        if answer is not None:
            form.answer(answer)
            _same_answer(paper, answer, found)
    except (_WrongError, form.FormError) as wrong:
        found.problems.append(str(wrong))
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, IndexError, RecursionError) as error:
        # the text of some of these quotes what was sent, at any length
        found.problems.append(f"the receipt is not in the form of one ({type(error).__name__})")
    return found


def parts(document: object) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Give the receipt and, where the document has one, the answer."""
    if not isinstance(document, dict):
        raise _WrongError("this is not a JSON object")
    inside = document.get("receipt")
    if not isinstance(inside, dict):
        return document, None
    if not {"answer", "receipt"} <= document.keys() <= {"answer", "receipt"} | _BESIDE:
        raise _WrongError("this is not a release with its receipt: it has other parts than answer and receipt")
    for name in ("epsilon", "delta"):
        if name in document and document[name] != inside.get("charge", {}).get(name):
            raise _WrongError(f"{name} beside the receipt is not what the receipt says was charged")
    return inside, document["answer"]


def _check(paper: dict[str, Any], found: Finding) -> None:
    units = ", ".join(f"{each['unit']} of {each['dataset']} (version {each['version']})" for each in paper["data"])
    found.lines.append(f"protected: {units}; neighbors by {paper['relation']}")
    derive = _check_analysis if "analysis" in paper else _check_query
    derive(paper, found)
    for entry in paper["ledger"]:
        found.lines.append(f"charge {entry['sequence']} of the ledger on {entry['dataset']}: {entry['hash'][:16]}…")
    read, charged = ([each["dataset"] for each in paper[name]] for name in ("data", "ledger"))
    if sorted(read) != sorted(charged) or len(set(read)) != len(read):
        raise _WrongError("not every dataset that was read was charged, once")
    if len({entry["sequence"] for entry in paper["ledger"]}) != len(charged):
        raise _WrongError("two charges have one number")


def _check_analysis(paper: dict[str, Any], found: Finding) -> None:
    """Derive the loss from the mechanisms' facts. How far one unit moves what they are applied to is not on paper."""
    found.lines.append(f"analysis {paper['analysis']}: {len(paper['event']['parts'])} kinds of draws")
    losses = []
    for event, count in paper["event"]["parts"]:
        loss = _stated(_facts(event))
        found.lines.append(f"{count} × {event['mechanism']}: {_show(loss)} each")
        losses.append(loss.times(_positive(count)))
    _total(losses, paper["charge"], found)


def _stated(facts: dict[str, Any]) -> _Loss:
    """Give the loss of one mechanism for the sensitivity that it states."""
    match facts["mechanism"]:
        case "laplace":
            epsilon = facts["sensitivity"] / _above_zero(facts["scale"])
            return _Loss(epsilon, epsilon * epsilon / 2)
        case "gaussian":
            return _Loss(None, facts["sensitivity_squared"] / (2 * _above_zero(facts["variance"])))
        case "response":
            loss = _above_zero(facts["epsilon"])
            return _Loss(loss, loss * loss / 2)
        case "selection" if facts["rule"] == "exponential":
            loss = facts["rate"] * facts["sensitivity"] * (1 if facts["monotone"] else 2)
            return _Loss(loss, loss * loss / 8)
        case "metric":
            # a point at a distance: where all points see the same distances, nothing is lost in the normaliser
            alike = facts["constant_normaliser"] is True
            loss = facts["rate"] * Fraction(facts["sensitivity"]) * (1 if alike else 2)
            return _Loss(loss, loss * loss / (2 if alike else 8))
        case "flips":
            loss = facts["rate"] * _positive(facts["distance"])
            return _Loss(loss, loss * loss / 2)
    raise _WrongError(f"draws of the unknown kind {facts['mechanism']!r}")


def _check_query(paper: dict[str, Any], found: Finding) -> None:
    """Derive how far one unit moves each sum from what a row adds and where it can be, and from that the loss."""
    reaches = _reaches(paper)
    for cells, touched, rows in reaches:
        whole = "all groups that exist" if cells is None else f"{cells} cells"
        found.lines.append(f"one unit reaches {touched} of {whole}, with {rows} rows in each")
    losses, events = [], []
    for draw in paper["draws"]:
        loss, own = _draw(draw, reaches, paper["relation"])
        losses.append(loss)
        events += own
        found.lines.append(f"{draw['what']}: {_show(loss)}")
    stated = [(_facts(event), _positive(count)) for event, count in paper["event"]["parts"]]
    if _runs(stated) != _runs(events):
        raise _WrongError("the event that was charged is not that of the draws")
    kinds = [draw["kind"] for draw in paper["draws"]]
    if (None in paper["cells"]) != ("threshold" in kinds) or kinds.count("threshold") > 1:
        raise _WrongError("groups that are not known in advance need a threshold, and no others have one")
    _total(losses, paper["charge"], found)


def _runs(events: list[tuple[dict[str, Any], int]]) -> list[tuple[dict[str, Any], int]]:
    """Join neighbors that are alike: a count may be written once or in parts."""
    joined: list[tuple[dict[str, Any], int]] = []
    for event, count in events:
        before = joined.pop() if joined and joined[-1][0] == event else (event, 0)
        joined.append((event, before[1] + count))
    return joined


def _reaches(paper: dict[str, Any]) -> list[Reach]:
    bounds = paper["bounds"]
    by_row = all(each["unit"] == "row" for each in paper["data"])
    if (bounds is None) != by_row:
        raise _WrongError("units that own several rows need bounds, and single rows have none")
    groups, rows = (1, 1) if bounds is None else (_positive(bounds["groups"]), _positive(bounds["rows"]))
    sizes = [None if size is None else _positive(size) for size in paper["cells"]]
    return [(size, groups if size is None else min(groups, size), rows) for size in sizes]


def _draw(draw: dict[str, Any], reaches: list[Reach], relation: str) -> Drawn:
    kinds = {"sum": _sum, "threshold": _threshold, "selection": _selection, "top": _top}
    return kinds[draw["kind"]](draw, reaches, relation)


def _sum(draw: dict[str, Any], reaches: list[Reach], relation: str) -> Drawn:
    """Noise on sums over cells: bound how far neighbors are apart in L1 and in squared L2, cell by cell."""
    noise = _facts(draw["noise"])
    return _noise(noise, draw, reaches, relation), [(noise, 1)]


def _noise(noise: dict[str, Any], draw: dict[str, Any], reaches: list[Reach], relation: str) -> _Loss:
    low, high = draw["adds"]
    l1 = squared = 0
    for cells, touched, rows in reaches:
        many = 1 if draw["per"] == "unit" else rows
        least, most = min(0, low * many), max(0, high * many)
        one = max(most, -least)
        if relation == "add_remove":
            l1 += touched * one
            squared += touched * one * one
            continue
        # worst over how many cells both units reach: k cells change by most − least, 2(touched − k) others by one
        ends = (0 if cells is None else max(0, 2 * touched - cells), touched)
        both = most - least
        l1 += max(k * both + 2 * (touched - k) * one for k in ends)
        squared += max(k * both * both + 2 * (touched - k) * one * one for k in ends)
    if noise["mechanism"] == "laplace":
        if noise["sensitivity"] < l1:
            raise _WrongError(f"{draw['what']}: neighbors are up to {l1} apart, and {noise['sensitivity']} is stated")
        epsilon = noise["sensitivity"] / _above_zero(noise["scale"])
        return _Loss(epsilon, epsilon * epsilon / 2)
    if noise["mechanism"] == "gaussian":
        if noise["sensitivity_squared"] < squared:
            raise _WrongError(f"{draw['what']}: the squared distance is up to {squared}, and less is stated")
        return _Loss(None, noise["sensitivity_squared"] / (2 * _above_zero(noise["variance"])))
    raise _WrongError(f"{draw['what']}: unknown noise {noise['mechanism']!r}")


def _threshold(draw: dict[str, Any], reaches: list[Reach], relation: str) -> Drawn:
    """Unknown keys are shown where the noisy number of units reaches a threshold: a unit's own keys must not show."""
    facts = _facts(draw["noise"])
    noise = _facts(facts["noise"])
    loss = _noise(noise, draw, reaches, relation)
    if draw["per"] != "unit" or draw["adds"] != [0, 1]:
        raise _WrongError(f"{draw['what']}: only counts of units can hide keys")
    (touched,) = [touched for _, touched, _ in reaches]
    above = _positive(draw["threshold"]) - 1
    if _positive(facts["keys"]) < touched or _positive(facts["above"]) > above:
        raise _WrongError(f"{draw['what']}: a key of one person shows more often than the stated facts say")
    # by the facts that are stated, which were charged: they may be worse than the truth, and not better
    least, keys = facts["above"], facts["keys"]
    slip = _laplace_tail(least, noise["scale"]) if noise["mechanism"] == "laplace" else _gaussian_tail(least, noise)
    # 1 − (1 − p)^k, rounded up: k keys of one person, of which none may show
    delta = 1 - _exp(keys * _ln(1 - slip, _DOWN), _DOWN)
    return _Loss(loss.pure, loss.rho, delta), [(facts, 1)]


def _laplace_tail(least: int, scale: Fraction) -> Fraction:
    """Bound Pr[Z ≥ least] = qˡ/(1 + q), with q = exp(−1/scale) and least ≥ 0."""
    if least < 0:
        raise _WrongError("a threshold that one person's count passes by itself")
    return _exp(-least / scale, _UP) / (1 + _exp(-1 / scale, _DOWN))


def _gaussian_tail(least: int, noise: dict[str, Any]) -> Fraction:
    """Bound Pr[Z ≥ least], Pr[z] ∝ exp(−z²/2σ²): term by term, each from the last, and what is left as geometric."""
    if least < 1:
        raise _WrongError("a threshold that one person's count passes by itself")
    variance = _above_zero(noise["variance"])
    if variance > _LARGEST_VARIANCE:
        raise _WrongError("noise too wide for its tail to be added up here")
    term = _decimal(_exp(-Fraction(least * least) / (2 * variance), _UP), _UP)
    ratio = _decimal(_exp(-Fraction(2 * least + 1) / (2 * variance), _UP), _UP)
    fall = _decimal(_exp(-1 / variance, _UP), _UP)
    tail, small = Decimal(0), term.scaleb(-40)
    while term > small:
        tail = _UP.add(tail, term)
        term, ratio = _UP.multiply(term, ratio), _UP.multiply(ratio, fall)
    tail = _UP.add(tail, _UP.divide(term, _DOWN.subtract(Decimal(1), ratio)))
    return Fraction(tail) / _normaliser(variance)


def _normaliser(variance: Fraction) -> Fraction:
    """Bound Σ exp(−z²/2σ²) over all integers from below: √(2πσ²) is less, by a factor of 1 + 2·exp(−2π²σ²) at least."""
    if variance > 16:
        return Fraction(_DOWN.sqrt(_decimal(2 * _PI * variance, _DOWN)))
    return 1 + 2 * sum((_exp(-Fraction(z * z) / (2 * variance), _DOWN) for z in range(1, 80)), Fraction(0))


def _selection(draw: dict[str, Any], reaches: list[Reach], relation: str) -> Drawn:
    """One selection in every cell: those that one unit reaches add up, each with scores that its rows move."""
    times = sum(touched for _, touched, _ in reaches)
    moved = _moves(draw) * max(rows for _, _, rows in reaches) * (2 if relation == "replace" else 1)
    one_way = draw["score"] == "mode" and relation == "add_remove"
    total, events = _Loss(Fraction(0), Fraction(0)), []
    for each in draw["picks"]:
        facts = _facts(each)
        total += _pick(facts, draw["what"], moved, one_way=one_way).times(times)
        events.append((facts, times))
    return total, events


def _top(draw: dict[str, Any], reaches: list[Reach], relation: str) -> Drawn:
    """The largest counts one after the other: a unit adds to any number of them, to each at most its rows."""
    moved = 1 if draw["per"] == "unit" else max(rows for _, _, rows in reaches)
    total, events = _Loss(Fraction(0), Fraction(0)), []
    for each in draw["picks"]:
        facts = _facts(each)
        total += _pick(facts, draw["what"], moved, one_way=relation == "add_remove")
        events.append((facts, 1))
    return total, events


def _pick(facts: dict[str, Any], what: str, moved: int, *, one_way: bool) -> _Loss:
    if facts["mechanism"] != "selection" or facts["rule"] != "exponential":
        raise _WrongError(f"{what}: unknown selection")
    if facts["sensitivity"] < moved:
        raise _WrongError(f"{what}: scores move by up to {moved}, and {facts['sensitivity']} is stated")
    if facts["monotone"] and not one_way:
        raise _WrongError(f"{what}: scores that move both ways are stated to move one way")
    loss = facts["rate"] * facts["sensitivity"] * (1 if facts["monotone"] else 2)
    return _Loss(loss, loss * loss / 8)  # bounded range (Cesar and Rogers 2021)


def _moves(draw: dict[str, Any]) -> int:
    """How far one row moves a score: a quantile a/b weighs rows below by b − a or a, the others count rows."""
    if draw["score"] == "quantile":
        level = Fraction(draw["level"])
        return max(level.numerator, level.denominator - level.numerator)
    if draw["score"] in ("min", "max", "mode"):
        return 1
    raise _WrongError(f"a score of the unknown kind {draw['score']!r}")


def _total(losses: list[_Loss], charge: dict[str, str], found: Finding) -> None:
    epsilon, delta = Fraction(charge["epsilon"]), Fraction(charge["delta"])
    total = sum(losses, _Loss(Fraction(0), Fraction(0)))
    if total.pure is not None and total.pure <= epsilon and total.delta <= delta:
        slip = f", δ = {float(total.delta):.3g}" if total.delta else ""
        found.loss = f"ε = {float(total.pure):.6g}{slip} (charged: {float(epsilon):.6g})"
        return
    if not total.delta < delta:
        raise _WrongError(f"the draws cost {_show(total)} and δ = {float(total.delta):.3g}, and less is stated")
    implied = _approximate(total.rho, delta - total.delta)
    if implied > epsilon:
        raise _WrongError(f"the draws cost ε = {float(implied):.9g} at that δ, and {float(epsilon):.9g} is stated")
    found.loss = f"ε = {float(implied):.6g} at δ = {float(delta):.3g} (charged: {float(epsilon):.6g})"


def _approximate(rho: Fraction, delta: Fraction) -> Fraction:
    """Bound ε at δ: the least over orders α of ρα + ln((α−1)/α) − ln(δα)/(α−1) (Canonne, Kamath and Steinke 2020)."""
    low = _ln(delta, _DOWN)
    return max(Fraction(0), min(rho * order + up - (low + down) / (order - 1) for order, up, down in _orders()))


@cache
def _orders() -> list[tuple[Fraction, Fraction, Fraction]]:
    """Give each order α with ln((α−1)/α) from above and ln α from below."""
    orders = [Fraction(n, 8) for n in range(9, 161)] + [Fraction(n) for n in range(21, 2001, 3)]
    return [(order, _ln((order - 1) / order, _UP), _ln(order, _DOWN)) for order in orders]


def _ln(x: Fraction, context: Context) -> Fraction:
    return _outwards(context.ln(_decimal(x, context)), context)


def _exp(x: Fraction, context: Context) -> Fraction:
    return _outwards(context.exp(_decimal(x, context)), context)


def _decimal(x: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(x.numerator), Decimal(x.denominator))


def _outwards(value: Decimal, context: Context) -> Fraction:
    # ln and exp round to nearest, whatever the context says: one step outwards
    return Fraction(context.next_plus(value) if context is _UP else context.next_minus(value))


def _same_answer(paper: dict[str, Any], stored: dict[str, Any], found: Finding) -> None:
    text = json.dumps(stored, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    if sha256(text.encode()).hexdigest() != paper["answer"]:
        raise _WrongError("the answer in this file is not the one that the receipt is for")
    found.lines.append("the answer in this file is the one that the receipt is for")


def _facts(event: dict[str, Any]) -> dict[str, Any]:
    """Read an event's numbers: text becomes an exact fraction."""
    exact = {"scale", "variance", "rate", "epsilon"}
    return {key: Fraction(value) if key in exact else value for key, value in event.items()}


def _positive(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _WrongError("a size that is not a positive whole number")
    return value


def _above_zero(value: Fraction) -> Fraction:
    if not value > 0:
        raise _WrongError("noise of no scale")
    return value


def _show(loss: _Loss) -> str:
    return f"ρ = {float(loss.rho):.4g}" if loss.pure is None else f"ε = {float(loss.pure):.4g}"
