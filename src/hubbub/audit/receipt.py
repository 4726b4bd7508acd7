"""Check a receipt independently: derive the privacy loss of a release again from the facts in its receipt.

The checker imports nothing from the rest of hubbub. It reads like a proof by hand: `receipt_format` checks the value of
each field; this file derives what one privacy unit can contribute to the sums and adds up the losses; `receipt_draws`
derives the loss of each draw, with the tail bounds of `receipt_loss`.

Receipts are not signed: anyone who changes an answer can hash it again. Only the ledger shows that (`ledger_check`).
"""

import json
import re
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from typing import Any

from hubbub.audit import receipt_format as form
from hubbub.audit.receipt_derived import check_derived, check_measured
from hubbub.audit.receipt_draws import CellReach, draw_loss, exact_facts, stated_loss
from hubbub.audit.receipt_fields import FormatError
from hubbub.audit.receipt_loss import Loss, ReceiptError, approximate, positive, show_loss

#: The name of a unit by time.
_PERIOD = re.compile(r".+ per (hour|day|week|month)")
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


def check_receipt(document: object) -> ReceiptCheck:
    """Check a receipt, alone or in the file of a release."""
    result = ReceiptCheck()
    try:
        paper, answer = split_document(document)
        if "sandbox" in paper:
            result.problems.append("This answer is from the sandbox: nothing was charged, and there is no receipt.")
            return result
        form.check_receipt(paper)
        _check(paper, result)
        if answer is not None:
            form.check_answer(answer)
            _check_answer(paper, answer, result)
    except (ReceiptError, FormatError) as wrong:
        result.problems.append(str(wrong))
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, IndexError, RecursionError) as error:
        # without the message, which may quote input of any length
        result.problems.append(f"The receipt is malformed ({type(error).__name__}).")
    return result


def split_document(document: object) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the receipt and, if the document has one, the answer."""
    if not isinstance(document, dict):
        raise ReceiptError("The document is not a JSON object.")
    inside = document.get("receipt")
    if not isinstance(inside, dict):
        return document, None
    if not {"answer", "receipt"} <= document.keys() <= {"answer", "receipt"} | _BESIDE:
        raise ReceiptError("The document has other fields than a release: answer and receipt.")
    for name in ("epsilon", "delta"):
        if name in document and document[name] != inside.get("charge", {}).get(name):
            raise ReceiptError(f"{name} of the release differs from the charge in the receipt.")
    return inside, document["answer"]


def _check(paper: dict[str, Any], result: ReceiptCheck) -> None:
    units = ", ".join(
        f"{' and '.join([data['unit'], *data.get('others', [])])} of {data['dataset']} (version {data['version']})"
        for data in paper["data"]
    )
    result.lines.append(f"privacy unit: {units}; neighboring relation: {paper['relation']}")
    for per in sorted({match[1] for data in paper["data"] if (match := _PERIOD.fullmatch(data["unit"]))}):
        result.lines.append(f"the loss below is for one {per} of a person; k {per}s lose k times as much")
    kinds = {"analysis": _check_analysis, "queries": _check_queries, "derived": _check_derived}
    next((kinds[name] for name in kinds if name in paper), _check_query)(paper, result)
    if "measured" in paper:
        check_measured(paper)
    if "after" in paper:
        result.lines.append("the answer is computed from noisy results by the SQL in `after`; it is not computed again")
    for entry in paper["ledger"]:
        result.lines.append(f"charge {entry['sequence']} of the ledger on {entry['dataset']}: {entry['hash'][:16]}…")
    read, charged = ([item["dataset"] for item in paper[name]] for name in ("data", "ledger"))
    if sorted(read) != sorted(charged) or len(set(read)) != len(read):
        raise ReceiptError("Some dataset was not charged exactly once.")
    if len({entry["sequence"] for entry in paper["ledger"]}) != len(charged):
        raise ReceiptError("Two charges have the same number.")


def _check_analysis(paper: dict[str, Any], result: ReceiptCheck) -> None:
    """Derive the loss from the facts of the mechanisms; the receipt does not show why their sensitivity holds."""
    result.lines.append(f"analysis {paper['analysis']}: {len(paper['event']['parts'])} kinds of draws")
    if "session" in paper:
        result.lines.append(f"an answer of the session of charge {paper['session']}, which paid for it")
    losses = []
    for event, count in paper["event"]["parts"]:
        if event.get("monotone") is True and paper["relation"] == "replace":
            raise ReceiptError("The receipt states that all scores move one way, and a replaced unit moves both ways.")
        loss = stated_loss(exact_facts(event))
        result.lines.append(f"{count} × {event['mechanism']}: {show_loss(loss)} each")
        losses.append(loss.times(positive(count)))
    _check_total(losses, paper["charge"], result)


def _check_derived(paper: dict[str, Any], result: ReceiptCheck) -> None:
    """Check that nothing was drawn, and that no draw of a source is used twice; `check_sources` adds up the sums."""
    result.lines += check_derived(paper["derived"])
    result.loss = "nothing more than the releases that it follows from"


def _check_query(paper: dict[str, Any], result: ReceiptCheck) -> None:
    """Derive the sensitivity of each sum from the contribution bounds, and from it the loss."""
    reaches = _reaches(paper)
    shared = any("others" in data for data in paper["data"])
    if shared != (paper["bounds"] is not None and "owners" in paper["bounds"]):
        raise ReceiptError("Bounds for two owners are required for rows with two owners, and only for them.")
    if paper["bounds"] is not None and "auto" in paper["bounds"]:
        result.lines.append("the query finds its contribution bounds; everything is in multiples of them")
    for cells, touched, rows, total in reaches:
        extent = "all existing groups" if cells is None else f"{cells} cells"
        more = f" and {total} in all of them" if total < touched * rows else ""
        result.lines.append(f"one unit reaches {touched} of {extent}, with {rows} rows in each{more}")
    losses, events = [], []
    public = [draw for draw in paper["draws"] if draw["kind"] == "public"]
    if public and paper["bounds"] is not None:
        raise ReceiptError("A count of rows is public only where each row is its own unit.")
    if bool(public) != ("rows" in paper) or len(public) > 1:
        raise ReceiptError("The public number of rows is stated if it was used, once, and only then.")
    if public:
        result.lines.append(f"{paper['rows']} rows, which is public: neighbors have as many")
    for draw in paper["draws"]:
        loss, charged = draw_loss(draw, reaches, paper["relation"])
        losses.append(loss)
        events += charged
        result.lines.append(f"{draw['what']}: {show_loss(loss)}")
    stated = [(exact_facts(event), positive(count)) for event, count in paper["event"]["parts"]]
    if _runs(stated) != _runs(events):
        raise ReceiptError("The charged event does not match the draws.")
    kinds = [draw["kind"] for draw in paper["draws"]]
    thresholds = kinds.count("threshold") + kinds.count("weights")
    if thresholds != (None in paper["cells"]):
        raise ReceiptError("A threshold is required for groups that are not known in advance, and only for them.")
    _check_levels(paper)
    _check_total(losses, paper["charge"], result)


def _check_queries(paper: dict[str, Any], result: ReceiptCheck) -> None:
    """Derive the loss of each query from its own bounds, and check that all of them were charged."""
    if paper["bounds"] is not None:
        raise ReceiptError("Several queries have contribution bounds of their own.")
    events, read = [], set()
    for number, part in enumerate(paper["queries"], 1):
        result.lines.append(f"release {number}:")
        data = [each for each in paper["data"] if each["dataset"] in part["data"]]
        if len(data) != len(part["data"]):
            raise ReceiptError("A release reads a dataset that was not charged.")
        counted = any(draw["kind"] == "public" for draw in part["draws"])
        rest = {name: value for name, value in paper.items() if name != "rows" or counted}
        _check_query({**rest, **part, "data": data}, result)
        events += part["event"]["parts"]
        read |= set(part["data"])
    if events != paper["event"]["parts"]:
        raise ReceiptError("The charged event does not match the releases.")
    if read != {each["dataset"] for each in paper["data"]}:
        raise ReceiptError("A dataset was charged that no release reads.")
    if "rows" in paper and not any(draw["kind"] == "public" for part in paper["queries"] for draw in part["draws"]):
        raise ReceiptError("The public number of rows is stated if it was used, once, and only then.")
    for name in ("epsilon", "delta"):
        if sum(Fraction(part["charge"][name]) for part in paper["queries"]) > Fraction(paper["charge"][name]):
            raise ReceiptError(f"The releases cost more {name} than was charged.")
    result.loss = f"ε = {float(Fraction(paper['charge']['epsilon'])):.6g}, as the sum of all releases"


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
    if paper["bounds"] is not None and "owners" in paper["bounds"]:
        alone = set(kinds) == {"bound", "sum"} and kinds.count("bound") == kinds.count("sum")
        if not auto or not alone or len(paper["cells"]) != 1:
            raise ReceiptError(
                "Each sum over rows with two owners needs a bound of its own, and nothing else is drawn."
            )
        if any(draw["kind"] == "sum" and draw["adds"][0] < 0 for draw in paper["draws"]):
            raise ReceiptError("Sums over rows with two owners are of values that are never negative.")
        return
    if auto and any(bounded) and "levels" not in kinds:
        raise ReceiptError("The contribution bounds are said to be found, and no draw finds them.")
    if "levels" in kinds and "rest" not in kinds and not (auto and any(bounded)):
        raise ReceiptError("A draw finds contribution bounds that no other draw needs.")


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
        raise ReceiptError("Contribution bounds are required for units with several rows, and only for them.")
    # where bounds are found by the query, everything is in multiples of the bound
    found = bounds is not None and "auto" in bounds
    groups, rows = (1, 1) if bounds is None or found else (positive(bounds["groups"]), positive(bounds["rows"]))
    sizes = [None if size is None else positive(size) for size in paper["cells"]]
    most = positive(bounds["total"]) if bounds is not None and "total" in bounds else groups * rows
    if bounds is not None and "owners" in bounds:
        # an owner of rows with two owners is in all cells, with the bound in each
        groups = most = max(size or 0 for size in sizes)
    touched = [groups if size is None else min(groups, size) for size in sizes]
    return [(size, reach, rows, min(most, reach * rows)) for size, reach in zip(sizes, touched, strict=True)]


def _check_total(losses: list[Loss], charge: dict[str, str], result: ReceiptCheck) -> None:
    epsilon, delta = Fraction(charge["epsilon"]), Fraction(charge["delta"])
    total = sum(losses, Loss(Fraction(0), Fraction(0)))
    if total.pure is not None and total.pure <= epsilon and total.delta <= delta:
        slip = f", δ = {float(total.delta):.3g}" if total.delta else ""
        result.loss = f"ε = {float(total.pure):.6g}{slip} (charged: {float(epsilon):.6g})"
        return
    if not total.delta < delta:
        raise ReceiptError(f"The draws cost {show_loss(total)} and δ = {float(total.delta):.3g}; less was charged.")
    implied = approximate(total, delta - total.delta)
    by_pair = total.gaussian_epsilon(delta - total.delta)
    implied = implied if by_pair is None else min(implied, by_pair)
    if implied > epsilon:
        raise ReceiptError(f"The draws cost ε = {float(implied):.9g} at this δ; ε = {float(epsilon):.9g} was charged.")
    result.loss = f"ε = {float(implied):.6g} at δ = {float(delta):.3g} (charged: {float(epsilon):.6g})"


def _check_answer(paper: dict[str, Any], answer: dict[str, Any], result: ReceiptCheck) -> None:
    text = json.dumps(answer, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    if sha256(text.encode()).hexdigest() != paper["answer"]:
        raise ReceiptError("The answer in this file does not match the receipt.")
    result.lines.append("the answer in this file matches the receipt")
