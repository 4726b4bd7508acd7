"""The receipt of a release: all facts that are needed to verify its privacy loss without this program.

The stored form of a release is its answer and its receipt; the receipt holds the answer's hash and the position of the
charge in the ledger's chain.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting.chain import Entry
from hubbub.analyses.base import PreparedAnalysis
from hubbub.answers import columns as long
from hubbub.answers.cell_text import Cell
from hubbub.answers.left_out import LeftOut
from hubbub.answers.release import Output, read_answer, stored_answer
from hubbub.answers.sampling import SamplingErrors
from hubbub.answers.stored import is_packed
from hubbub.core import chunked_json as pieces
from hubbub.core.disclosure import DisclosureRule
from hubbub.core.events import to_facts
from hubbub.core.schema import Table
from hubbub.curator.replay import declared_hash
from hubbub.mechanisms.top_k import TopK
from hubbub.sql import release_size as size
from hubbub.sql import topk
from hubbub.sql.auto_bounds import LevelHistogram
from hubbub.sql.explain import describe, show
from hubbub.sql.measures import KeyWeight, UnitCount
from hubbub.sql.noise import CellSelections, NoisyMeasure
from hubbub.sql.owner_levels import RESOLUTION, OwnerLevels
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
            | ({"others": [unit.column for unit in table.others]} if table.others else {})
            | ({} if table.blocks is None or table.blocks.read is None else {"blocks": table.blocks.read.to_json()})
            for table in planned.private
            if table.unit is not None
        ],
        "relation": planned.relation.value,
        "bounds": None if planned.limits is None else planned.limits.to_json(),
        "left_out": left_out.to_json(),
        **planned.receipt_facts,
        **disclosure_facts(planned.private),
        "declared": declared_hash(planned.private),
        "wording": WORDING,
        "derivation": list(planned.derivation),
        "event": planned.event_facts,
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


def disclosure_facts(tables: Sequence[Table]) -> dict[str, Any]:
    """State the owner's rules for small numbers and rounding, if there are any."""
    form = DisclosureRule.strictest(table.disclosure for table in tables).form
    return {"disclosure": form} if form else {}


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


def _levels(level: LevelHistogram | OwnerLevels) -> dict[str, Any]:
    if isinstance(level, OwnerLevels):
        return {
            "kind": "bound",
            "what": f"how much of one owner counts in a cell: one of {len(level.levels)} bounds",
            "parts": RESOLUTION,
            "picks": [to_facts(level.mechanism.event)],
        }
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


def outputs(answer: Answer) -> tuple[list[Output], Sequence[float | None]]:
    """Convert arrays to plain values, or to long columns; NaN and infinite bounds become None."""
    columns: list[Output] = []
    ends = enumerate(zip(answer.low, answer.high, strict=True))
    noisy = sum(place in answer.kept or not np.all(np.isnan(low) & np.isnan(high)) for place, (low, high) in ends)
    full = size.has_all_parts(len(answer.ratio), noisy)
    for place, (name, values) in enumerate(zip(answer.columns, answer.values, strict=True)):
        (kind, cells), low, high = _cells(values), answer.low[place], answer.high[place]
        if np.all(np.isnan(low)) and np.all(np.isnan(high)) and place not in answer.kept:
            columns.append(Output(name, kind, cells))
            continue
        sampling = answer.sampling[place] if answer.sampling and full else None
        known = sampling is not None and bool(np.isfinite(sampling.half).any())
        columns.append(
            Output(
                name,
                kind,
                cells,
                _floats(low),
                _floats(high),
                SamplingErrors(_floats(sampling.half), sampling.at_most) if known and sampling is not None else None,
                (_floats(answer.joint[place][0]), _floats(answer.joint[place][1])) if answer.joint and full else None,
            )
        )
    return columns, _floats(answer.ratio if full else np.full(len(answer.ratio), np.nan))


def encode(
    columns: Sequence[Output], ratio: Sequence[float | None], paper: Mapping[str, Any], model: Mapping[str, Any]
) -> bytes:
    """Encode what the ledger stores: the answer, and the receipt with the answer's hash."""
    answer = pieces.dumps(stored_answer(columns, ratio, model), sort_keys=True).encode()
    receipt = pieces.dumps({**paper, "answer": sha256(answer).hexdigest()}, sort_keys=True).encode()
    # the same bytes as those of both in one object with sorted keys; an answer may be long, so it is written once
    return b'{"answer":' + answer + b',"receipt":' + receipt + b"}"


@dataclass(frozen=True, slots=True)
class StoredRelease:
    """What the ledger stores of a release, decoded; `packed` is a long answer as it is stored."""

    outputs: tuple[Output, ...]
    ratio: Sequence[float | None]
    model: dict[str, Any]
    receipt: dict[str, Any]
    packed: dict[str, Any] | None


def decode(stored: bytes) -> StoredRelease:
    """Decode what the ledger stores."""
    document = pieces.loads(stored)
    answer = document["answer"]
    return StoredRelease(*read_answer(answer), document["receipt"], answer if is_packed(answer) else None)


def _floats(values: NDArray[np.float64]) -> Sequence[float | None]:
    if len(values) > size.LONG:
        return long.numbers(values)
    plain: NDArray[np.object_] = np.asarray(values).astype(object)
    plain[~np.isfinite(values)] = None
    cells: list[float | None] = plain.tolist()
    return cells


def _cells(values: NDArray[Any]) -> tuple[str, Sequence[Cell]]:
    """Give the kind and the values of a column."""
    if len(values) > size.LONG:
        return _long_cells(values)
    if isinstance(values, np.ma.MaskedArray):
        kind, cells = _cells(values.data)
        mask = np.ma.getmaskarray(values)
        return kind, [None if hidden else cell for cell, hidden in zip(cells, mask.tolist(), strict=True)]
    match values.dtype.kind:
        case "f":
            return "real", _floats(values)
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
    kind = _kind(set(map(type, cells)))
    # a declared list such as 0, 0.5, 1 mixes integers and others
    return kind, [None if cell is None else float(cell) for cell in cells] if kind == "real" else cells


def _kind(types: set[type]) -> str:
    """Give the kind of a column of objects by their types."""
    kinds = ((float, "real"), (bool, "boolean"), (int, "integer"), (datetime, "timestamp"), (date, "date"))
    return next((name for cls, name in kinds if any(issubclass(each, cls) for each in types)), "text")


def _long_cells(values: NDArray[Any]) -> tuple[str, long.Column]:
    """Give the kind and the values of a long column."""
    match values.dtype.kind:
        case "f":
            return "real", long.numbers(values)
        case "i" | "u":
            return "integer", long.Column(values.astype(np.int64))
        case "b":
            return "boolean", long.Column(values)
        case "M" if values.dtype == np.dtype("datetime64[D]"):
            return "date", long.Column(values)
        case "M":
            return "timestamp", long.Column(values.astype("datetime64[us]"))
    plain: NDArray[Any] = np.ma.getdata(values)
    null = long.Column(values).null
    kind = _kind(set(map(type, plain[~null])))
    if kind == "text":
        plain = plain.copy()
        plain[null] = None
        return kind, long.Column(plain)
    typed = {"real": "float64", "boolean": "bool", "integer": "int64", "date": "datetime64[D]"}
    some = next(iter(plain[~null]))  # of this kind, so that every entry can be converted
    filled = np.where(null, np.array(some, dtype=object), plain).astype(typed.get(kind, "datetime64[us]"))
    if kind == "real":
        return kind, long.numbers(np.ma.array(filled, mask=null))
    return kind, long.Column(np.ma.array(filled, mask=null) if null.any() else filled)
