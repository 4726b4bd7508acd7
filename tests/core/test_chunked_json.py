"""JSON in pieces: the same as Python's own, in short steps."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.answers.release import Output, answer_json
from hubbub.core import chunked_json as pieces
from hubbub.core import deadline
from hubbub.curator import receipt
from hubbub.server.problems import release_response

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.lists(_SCALARS, min_size=5)
)


def plain(value: object, *, sort_keys: bool) -> str:
    return json.dumps(value, sort_keys=sort_keys, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


@pytest.fixture(autouse=True)
def _short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_STEP", 3)
    monkeypatch.setattr(pieces, "_SMALL", 0)


@pytest.mark.parametrize("sort_keys", [False, True])
@given(value=_VALUES)
def test_what_is_written_and_read_is_what_python_writes_and_reads(value: Any, *, sort_keys: bool) -> None:
    text = plain(value, sort_keys=sort_keys)
    assert pieces.dumps(value, sort_keys=sort_keys) == text
    assert pieces.loads(text.encode()) == value
    assert pieces.loads(json.dumps(value, indent=1).encode()) == value


@pytest.mark.parametrize(
    "text",
    ["", "[", "[1", "[1,", "[1,]", "[1}", "{", '{"a"', '{"a":', '{"a":1', '{"a":1]', '{"a":1{"b":2}', "[1][", "1 2"],
)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        pieces.loads(text.encode())


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\w"):
        pieces.dumps([1.0] * 10 + [float("nan")])


def _large() -> tuple[list[Output], list[float | None]]:
    rows = 30_000
    cells: list[Any] = [n / 7 for n in range(rows)]
    texts = Output("word", "text", [f'{n}", "' for n in range(rows)])
    return [texts, Output("x", "real", cells, cells, cells)], [0.5] * rows


@pytest.fixture
def longest(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note how many bytes Python's reader and writer of JSON take in one step: nobody else can run meanwhile."""
    monkeypatch.undo()
    taken: list[int] = []
    encode, decode = json.JSONEncoder.encode, json.JSONDecoder.decode

    def encoding(self: json.JSONEncoder, value: Any) -> str:
        text = encode(self, value)
        taken.append(len(text))
        return text

    def decoding(self: json.JSONDecoder, text: str, *options: Any) -> Any:
        taken.append(len(text))
        return decode(self, text, *options)

    monkeypatch.setattr(json.JSONEncoder, "encode", encoding)
    monkeypatch.setattr(json.JSONDecoder, "decode", decoding)
    return taken


def test_no_step_of_a_large_release_is_long(longest: list[int]) -> None:
    columns, ratio = _large()
    stored = receipt.encode(columns, ratio, {"charge": {}}, {})
    found = receipt.decode(stored)
    body = release_response({"answer": answer_json(found.outputs, ratio, {}), "receipt": found.receipt}).body
    assert len(body) > 2_000_000
    assert max(longest) < 200_000


@pytest.mark.parametrize("work", ["read", "write"])
def test_work_that_nobody_wants_stops_on_the_way(work: str) -> None:
    value = [float(n) for n in range(10_000)]
    text = json.dumps(value, separators=(",", ":")).encode()
    calls: dict[str, Callable[[], object]] = {
        "read": lambda: pieces.loads(text),
        "write": lambda: pieces.dumps(value),
    }
    checks = 0

    def gone() -> None:
        nonlocal checks
        checks += 1
        if checks == 5:
            raise InterruptedError

    with deadline.add_check(gone), pytest.raises(InterruptedError):
        calls[work]()
