"""The receipt of a release: all facts that are needed to verify its privacy loss without this program.

The stored form of a release is its answer and its receipt; the receipt holds the answer's hash and the position of the
charge in the ledger's chain.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting.chain import Entry
from hubbub.analyses.base import PreparedAnalysis
from hubbub.answers.left_out import LeftOut
from hubbub.answers.release import Cell, Output, answer_json, read_answer
from hubbub.answers.sampling import SamplingErrors
from hubbub.core import chunked_json as pieces
from hubbub.core.events import to_facts
from hubbub.curator.replay import declared_hash
from hubbub.mechanisms.top_k import TopK
from hubbub.sql import topk
from hubbub.sql.auto_bounds import LevelHistogram
from hubbub.sql.explain import describe, show
from hubbub.sql.measures import KeyWeight, UnitCount
from hubbub.sql.noise import CellSelections, NoisyMeasure
from hubbub.sql.partition_selection import Rule
from hubbub.sql.plan import Plan
from hubbub.sql.presentation import Answer
from hubbub.sql.value_bounds import ValueBounds

FORMAT = 1
#: The edition of the sentences in `derivation`; raise it when they are reworded. Receipts without it have the first.
WORDING = 2

_PUBLIC = {"kind": "public", "what": "rows: their number is public under the replace relation"}


def receipt(
    planned: PreparedAnalysis,
    *,
    query: str,
    charges: Sequence[Entry],
    versions: Mapping[str, str],
    left_out: LeftOut,
) -> dict[str, Any]:
    """Write the receipt of a charged analysis, before it has an answer."""
    return {
        "receipt": FORMAT,
        "query": query,
        "data": [
            {
                "dataset": table.name,
                "unit": "row" if table.unit.column is None else table.unit.column,
                "version": versions[table.name],
            }
            for table in planned.private
            if table.unit is not None
        ],
        "relation": planned.relation.value,
        "bounds": None if planned.limits is None else planned.limits.to_json(),
        "left_out": left_out.to_json(),
        **planned.receipt(),
        "declared": declared_hash(table.shown() for table in planned.private),
        "wording": WORDING,
        "derivation": list(planned.derivation),
        "event": to_facts(planned.event),
        "charge": {"epsilon": str(planned.epsilon), "delta": str(planned.delta)},
        "ledger": [
            {
                "dataset": entry.dataset,
                "sequence": entry.sequence,
                "hash": entry.hash.hex(),
                "policy": entry.config.hex(),
                "time": entry.time,
            }
            for entry in charges
        ],
    }


def draws(plan: Plan) -> list[dict[str, Any]]:
    """Give the facts that determine the loss of each draw, in the order of the event's parts."""
    facts = [_levels(level) for level in plan.levels]
    for place, noised in enumerate(plan.measures):
        rule = plan.threshold if place == plan.keys else None
        if noised.event is None:
            facts.append(_PUBLIC)
            continue
        adds = plan.adds[place] if plan.levels else (noised.measure.low, noised.measure.high)
        facts.append(_sum(noised, adds) if rule is None else _groups(noised, rule))
    facts += map(_selection, plan.choices)
    if plan.top is not None:
        facts.append(_top(plan, plan.top))
    return facts


def draws_with_values(values: ValueBounds, plan: Plan) -> list[dict[str, Any]]:
    """Give the facts of a query that finds bounds of columns: its histograms, and all the rest as one pure draw.

    Whether the rest uses the public number of rows follows from the plan, whatever bounds are found.
    """
    facts = [_levels(level) for level in values.histograms]
    facts += [_PUBLIC for noised in plan.measures if noised.event is None]
    (noise, _) = to_facts(values.event)["parts"][-1]  # type: ignore[index]
    return [*facts, {"kind": "rest", "what": "the query with the bounds that were found, as a whole", "noise": noise}]


def _top(plan: Plan, top: TopK) -> dict[str, Any]:
    measure = topk.measure(plan.query)
    return {
        "kind": "top",
        "what": f"the {top.k} largest of {top.one.candidates} counts: {describe(measure)}",
        "per": "unit" if isinstance(measure, UnitCount) else "row",
        "picks": [to_facts(top.one.event)] * top.k,
    }


def _levels(level: LevelHistogram) -> dict[str, Any]:
    names = {"rows": "rows", "cells": "groups", "sum": "total of a sum", "values": "largest value"}
    what = names[level.contribution]
    return {
        "kind": "levels",
        "what": f"units by their {what}, at {len(level.levels)} levels: a unit adds 1 to one level",
        "noise": to_facts(level.mechanism.event),
    }


def _sum(noised: NoisyMeasure, adds: tuple[int, int]) -> dict[str, Any]:
    measure = noised.measure
    return {
        "kind": "sum",
        "what": describe(measure),
        "per": "unit" if isinstance(measure, UnitCount) else "row",
        "adds": list(adds),
        "noise": None if noised.event is None else to_facts(noised.event),
    }


def _groups(noised: NoisyMeasure, rule: Rule) -> dict[str, Any]:
    """Give the facts of the draw that selects groups: by a count of units, or by weights of a unit's own groups."""
    measure, selected = noised.measure, {"threshold": rule.threshold, "noise": to_facts(rule.event)}
    if isinstance(measure, KeyWeight):
        weights = {"keys": measure.keys, "weight": measure.weight}
        return {"kind": "weights", "what": describe(measure)} | weights | selected
    # a count of rows selects groups only where a unit has one row in each
    return _sum(noised, (measure.low, measure.high)) | {"kind": "threshold", "per": "unit"} | selected


def _selection(chosen: CellSelections) -> dict[str, Any]:
    choice, picks = chosen.choice, [to_facts(chosen.mechanism.event)]
    what = f"{choice.function} of {show(choice.candidates.expr)} among {choice.candidates.count} candidates"
    if len(choice.levels) > 1:
        return {"kind": "quantiles", "what": what, "levels": [str(level) for level in choice.levels], "picks": picks}
    level = str(choice.levels[0]) if choice.levels else None
    return {"kind": "selection", "what": what, "score": choice.function, "level": level, "picks": picks}


def outputs(answer: Answer) -> tuple[list[Output], list[float | None]]:
    """Convert arrays to plain values; NaN and infinite bounds become None."""
    columns = []
    for place, (name, values) in enumerate(zip(answer.columns, answer.values, strict=True)):
        (kind, cells), low, high = _cells(values), answer.low[place], answer.high[place]
        if np.all(np.isnan(low)) and np.all(np.isnan(high)):
            columns.append(Output(name, kind, cells))
            continue
        sampling = answer.sampling[place] if answer.sampling else None
        known = sampling is not None and bool(np.isfinite(sampling.half).any())
        columns.append(
            Output(
                name,
                kind,
                cells,
                _floats(low),
                _floats(high),
                SamplingErrors(_floats(sampling.half), sampling.at_most) if known and sampling is not None else None,
                (_floats(answer.joint[place][0]), _floats(answer.joint[place][1])) if answer.joint else None,
            )
        )
    return columns, _floats(answer.ratio)


def encode(
    columns: Sequence[Output], ratio: Sequence[float | None], paper: Mapping[str, Any], model: Mapping[str, Any]
) -> bytes:
    """Encode what the ledger stores: the answer, and the receipt with the answer's hash."""
    answer = answer_json(columns, ratio, model)
    digest = sha256(pieces.dumps(answer, sort_keys=True).encode()).hexdigest()
    return pieces.dumps({"answer": answer, "receipt": {**paper, "answer": digest}}, sort_keys=True).encode()


def decode(stored: bytes) -> tuple[tuple[Output, ...], list[float | None], dict[str, Any], dict[str, Any]]:
    """Decode what the ledger stores: outputs, ratio, model, receipt."""
    document = pieces.loads(stored)
    return *read_answer(document["answer"]), document["receipt"]


def _floats(values: NDArray[np.float64]) -> list[float | None]:
    plain: NDArray[np.object_] = np.asarray(values).astype(object)
    plain[~np.isfinite(values)] = None
    cells: list[float | None] = plain.tolist()
    return cells


def _cells(values: NDArray[Any]) -> tuple[str, list[Cell]]:
    """Give the kind and the values of a column."""
    if isinstance(values, np.ma.MaskedArray):
        kind, cells = _cells(values.data)
        mask = np.ma.getmaskarray(values)
        return kind, [None if hidden else cell for cell, hidden in zip(cells, mask.tolist(), strict=True)]
    match values.dtype.kind:
        case "f":
            return "real", _floats(values)  # type: ignore[return-value]
        case "i" | "u":
            return "integer", values.tolist()
        case "b":
            return "boolean", values.tolist()
        case "M":
            plain = values.astype("datetime64[us]").tolist()
            if values.dtype == np.dtype("datetime64[D]"):
                plain = values.tolist()
            return ("date" if values.dtype == np.dtype("datetime64[D]") else "timestamp"), plain
    cells = values.tolist()
    if any(isinstance(cell, float) for cell in cells):
        # a declared list such as 0, 0.5, 1 mixes integers and others
        return "real", [None if cell is None else float(cell) for cell in cells]
    first = next((cell for cell in cells if cell is not None), "")
    kinds: tuple[tuple[type, str], ...] = (
        (bool, "boolean"),
        (int, "integer"),
        (datetime, "timestamp"),
        (date, "date"),
    )
    return next((name for cls, name in kinds if isinstance(first, cls)), "text"), cells
