"""An independent check of a receipt: the loss of a release, derived again from the facts on paper.

This file imports nothing of the planner, the mechanisms or the accountant, and reads like the argument that one would
write by hand: what one unit can add to the sums, the noise on each, the loss of each, the loss of all.
"""

import json
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from hashlib import sha256
from typing import Any

_UP = Context(prec=50, rounding=ROUND_CEILING)
_DOWN = Context(prec=50, rounding=ROUND_FLOOR)
_KEYS = {
    "receipt", "query", "data", "relation", "bounds", "cells", "draws", "derivation", "event", "charge", "ledger",
    "answer",
}  # fmt: skip


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


def check(document: object) -> Finding:
    """Check a receipt, alone or inside the file of a release."""
    found = Finding()
    try:
        paper, answer = _parts(document)
        _check(paper, found)
        if answer is not None:
            _same_answer(paper, answer, found)
    except _WrongError as wrong:
        found.problems.append(str(wrong))
    except (KeyError, TypeError, ValueError, ZeroDivisionError, AttributeError, IndexError) as error:
        found.problems.append(f"the receipt is not in the form of one ({type(error).__name__}: {error})")
    return found


def _parts(document: object) -> tuple[dict[str, Any], dict[str, Any] | None]:
    if not isinstance(document, dict):
        raise _WrongError("this is not a JSON object")
    inside = document.get("receipt")
    if isinstance(inside, dict):
        return inside, document
    return document, None


def _check(paper: dict[str, Any], found: Finding) -> None:
    if paper["receipt"] != 1 or set(paper) != _KEYS:
        raise _WrongError("this is not a receipt of a form that this program knows")
    units = ", ".join(f"{each['unit']} of {each['dataset']} (version {each['version']})" for each in paper["data"])
    found.lines.append(f"protected: {units}; neighbours by {paper['relation']}")
    reaches = _reaches(paper)
    for cells, touched, rows in reaches:
        found.lines.append(f"one unit reaches {touched} of {cells} cells, with {rows} rows in each")
    losses, events = [], []
    for draw in paper["draws"]:
        loss, own = _draw(draw, reaches, paper["relation"])
        losses.append(loss)
        events += own
        found.lines.append(f"{draw['what']}: {_show(loss)}")
    stated = [[_facts(event), int(count)] for event, count in paper["event"]["parts"]]
    if paper["event"]["mechanism"] != "together" or stated != events:
        raise _WrongError("the event that was charged is not that of the draws")
    _total(losses, paper["charge"], found)
    for entry in paper["ledger"]:
        found.lines.append(f"charge {entry['sequence']} of the ledger on {entry['dataset']}: {entry['hash'][:16]}…")
    if {entry["dataset"] for entry in paper["ledger"]} != {each["dataset"] for each in paper["data"]}:
        raise _WrongError("not every data set that was read was charged")


def _reaches(paper: dict[str, Any]) -> list[tuple[int, int, int]]:
    """Give (cells, cells that one unit reaches, rows in each) of each grouping set."""
    bounds = paper["bounds"]
    by_row = all(each["unit"] == "row" for each in paper["data"])
    if (bounds is None) != by_row:
        raise _WrongError("units that own several rows need bounds, and single rows have none")
    if bounds is None:
        return [(_positive(size), 1, 1) for size in paper["cells"]]
    groups, rows = _positive(bounds["groups"]), _positive(bounds["rows"])
    return [(_positive(size), min(groups, size), rows) for size in paper["cells"]]


def _draw(draw: dict[str, Any], reaches: list[tuple[int, int, int]], relation: str) -> tuple[_Loss, list[list[Any]]]:
    if draw["kind"] == "sum":
        return _sum(draw, reaches, relation)
    if draw["kind"] == "selection":
        return _selection(draw, reaches, relation)
    raise _WrongError(f"a draw of the unknown kind {draw['kind']!r}")


def _sum(draw: dict[str, Any], reaches: list[tuple[int, int, int]], relation: str) -> tuple[_Loss, list[list[Any]]]:
    """Noise on sums over cells: bound how far neighbours are apart in L1 and in squared L2, cell by cell."""
    low, high = (int(end) for end in draw["adds"])
    l1 = squared = 0
    for cells, touched, rows in reaches:
        many = 1 if draw["per"] == "unit" else rows
        least, most = min(0, low * many), max(0, high * many)
        one = max(most, -least)
        if relation == "add_remove":
            l1 += touched * one
            squared += touched * one * one
        elif relation == "replace":
            # worst over how many cells both units reach: k cells change by most − least, 2(touched − k) by one
            choices = range(max(0, 2 * touched - cells), touched + 1)
            both = most - least
            l1 += max(k * both + 2 * (touched - k) * one for k in (choices[0], choices[-1]))
            squared += max(k * both * both + 2 * (touched - k) * one * one for k in (choices[0], choices[-1]))
        else:
            raise _WrongError(f"{relation!r} is not a relation")
    noise = _facts(draw["noise"])
    if noise["mechanism"] == "laplace":
        if noise["sensitivity"] < l1:
            raise _WrongError(f"{draw['what']}: neighbours are up to {l1} apart, and {noise['sensitivity']} is stated")
        epsilon = noise["sensitivity"] / _above_zero(noise["scale"])
        return _Loss(epsilon, epsilon * epsilon / 2), [[noise, 1]]
    if noise["mechanism"] == "gaussian":
        if noise["sensitivity_squared"] < squared:
            raise _WrongError(f"{draw['what']}: the squared distance is up to {squared}, and less is stated")
        return _Loss(None, noise["sensitivity_squared"] / (2 * _above_zero(noise["variance"]))), [[noise, 1]]
    raise _WrongError(f"{draw['what']}: unknown noise {noise['mechanism']!r}")


def _selection(
    draw: dict[str, Any], reaches: list[tuple[int, int, int]], relation: str
) -> tuple[_Loss, list[list[Any]]]:
    """One selection in every cell: those that one unit reaches add up, each with scores that its rows move."""
    times = sum(touched for _, touched, _ in reaches)
    moved = _moves(draw) * max(rows for _, _, rows in reaches) * (2 if relation == "replace" else 1)
    pure, rho, events = Fraction(0), Fraction(0), []
    for each in draw["picks"]:
        facts = _facts(each)
        if facts["mechanism"] != "selection" or facts["rule"] != "exponential":
            raise _WrongError(f"{draw['what']}: unknown selection")
        if facts["sensitivity"] < moved or (facts["monotone"] and relation != "add_remove"):
            raise _WrongError(f"{draw['what']}: scores move by up to {moved}, and {facts['sensitivity']} is stated")
        if facts["monotone"] and draw["score"] != "mode":
            raise _WrongError(f"{draw['what']}: scores that move both ways are stated to move one way")
        loss = facts["rate"] * facts["sensitivity"] * (1 if facts["monotone"] else 2)
        pure += times * loss
        rho += times * loss * loss / 8  # bounded range (Cesar and Rogers 2021)
        events.append([facts, times])
    return _Loss(pure, rho), events


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
    own = sum((loss.delta for loss in losses), Fraction(0))
    if all(loss.pure is not None for loss in losses):
        pure = sum((loss.pure for loss in losses if loss.pure is not None), Fraction(0))
        if pure <= epsilon and own <= delta:
            found.loss = f"ε = {float(pure):.6g} (charged: {float(epsilon):.6g})" + (
                f", δ = {float(own):.3g}" if own else ""
            )
            return
        if not delta:
            raise _WrongError(f"the draws cost ε = {float(pure):.9g}, and {float(epsilon):.9g} is stated")
    if not own < delta:
        raise _WrongError("this noise has no pure loss, and no δ is stated")
    rho = sum((loss.rho for loss in losses), Fraction(0))
    implied = _approximate(rho, delta - own)
    if implied > epsilon:
        raise _WrongError(f"the draws cost ε = {float(implied):.9g} at that δ, and {float(epsilon):.9g} is stated")
    found.loss = f"ε = {float(implied):.6g} at δ = {float(delta):.3g} (charged: {float(epsilon):.6g})"


def _approximate(rho: Fraction, delta: Fraction) -> Fraction:
    """Bound ε at δ: the least over orders α of ρα + ln((α−1)/α) − ln(δα)/(α−1) (Canonne, Kamath and Steinke 2020)."""
    orders = [Fraction(n, 8) for n in range(9, 161)] + [Fraction(n) for n in range(21, 2001, 3)]
    bounds = (
        rho * order + _ln((order - 1) / order, _UP) - _ln(delta * order, _DOWN) / (order - 1)
        for order in orders
    )  # fmt: skip
    return max(Fraction(0), min(bounds))


def _ln(x: Fraction, context: Context) -> Fraction:
    value = context.ln(context.divide(Decimal(x.numerator), Decimal(x.denominator)))
    # ln rounds to nearest, whatever the context says: one step outwards
    return Fraction(context.next_plus(value) if context is _UP else context.next_minus(value))


def _same_answer(paper: dict[str, Any], document: dict[str, Any], found: Finding) -> None:
    stored = document.get("answer")
    if stored is None:
        return
    text = json.dumps(stored, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    if sha256(text.encode()).hexdigest() != paper["answer"]:
        raise _WrongError("the answer in this file is not the one that the receipt is for")
    found.lines.append("the answer in this file is the one that the receipt is for")


def _facts(event: dict[str, Any]) -> dict[str, Any]:
    """Read an event's numbers: text becomes an exact fraction."""
    exact = {"scale", "variance", "rate"}
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
