"""The stored form of a long answer: a description of its columns, and a Parquet file with their cells.

Tested in tests/answers/test_columns.py.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hubbub.answers.columns import FORM, pack, unpack

if TYPE_CHECKING:
    from hubbub.answers.release import Output

_FIELDS = {"form", "rows", "columns", "parquet", "model"}
_PARTS = ("values", "low", "high", "sampling", "joint_low", "joint_high")


def is_packed(stored: Mapping[str, Any]) -> bool:
    """Tell whether an answer has this form."""
    return "form" in stored


def pack_answer(outputs: "Sequence[Output]", ratio: Sequence[float | None], model: Mapping[str, Any]) -> dict[str, Any]:
    """Return a long answer in the form that is stored and hashed."""
    parts: dict[str, tuple[str, Sequence[Any]]] = {"ratio": ("real", ratio)}
    columns = []
    for place, output in enumerate(outputs):
        sampling, joint = output.sampling, output.joint or (None, None)
        cells = (output.values, output.low, output.high, sampling and sampling.values, *joint)
        present = {name: each for name, each in zip(_PARTS, cells, strict=True) if each is not None}
        for name, each in present.items():
            parts[f"c{place}_{name}"] = (output.kind if name == "values" else "real", each)
        columns.append(
            {"name": output.name, "kind": output.kind, "parts": list(present)}
            | ({} if sampling is None else {"at_most": sampling.at_most})
        )
    answer = {"form": FORM, "rows": len(ratio), "columns": columns, "parquet": pack(parts)}
    return answer | ({"model": dict(model)} if model else {})


def unpack_answer(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a long answer in the form of a short one, with long columns instead of lists; ValueError if it is none."""
    if stored["form"] != FORM or not set(stored) <= _FIELDS:
        raise ValueError("the answer was stored by a later version")
    kinds = {"ratio": "real"}
    for place, column in enumerate(stored["columns"]):
        if not set(column["parts"]) <= set(_PARTS) or "values" not in column["parts"]:
            raise ValueError("a column has other parts")
        kinds |= {f"c{place}_{name}": column["kind"] if name == "values" else "real" for name in column["parts"]}
    parts = unpack(stored["parquet"], kinds)
    if any(len(each) != stored["rows"] for each in parts.values()):
        raise ValueError("the answer has another number of rows")
    columns = []
    for place, column in enumerate(stored["columns"]):
        cells = {name: parts.get(f"c{place}_{name}") for name in _PARTS}
        form = {"name": column["name"], "kind": column["kind"]} | {name: cells[name] for name in _PARTS[:3]}
        if cells["sampling"] is not None:
            form["sampling"] = {"values": cells["sampling"], "at_most": column["at_most"]}
        if cells["joint_low"] is not None:
            form["joint"] = {"low": cells["joint_low"], "high": cells["joint_high"]}
        columns.append(form)
    return {"columns": columns, "ratio": parts["ratio"]} | ({"model": stored["model"]} if "model" in stored else {})
