"""Batches: many questions with one price, one charge and one run.

    with h.batch(epsilon=1) as b:
        young = b.query("SELECT COUNT(*) FROM visits WHERE age < 18")
        regions = b.query("SELECT region, COUNT(*) FROM visits GROUP BY region")
    young.result().rows

The questions are sent when the block ends, together. Until then nothing is run or charged.

Tested in tests/curator/test_batch.py.
"""

import re
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Protocol, Self, Unpack

from hubbub.answers.estimate import Estimate
from hubbub.answers.left_out import LeftOut
from hubbub.answers.options import Options, request_key
from hubbub.answers.release import Output, Release, answer_json, read_answer
from hubbub.core.call import AnalysisCall
from hubbub.core.numbers import Number
from hubbub.errors import ParameterError

#: The name of a batch in CALL.
BATCH = "batch"
#: What a text of several queries is made of: strings, quoted names, comments, semicolons and everything else.
_PIECES = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|;|[^'";/-]+|.""", re.DOTALL)


def split_queries(text: str) -> list[str]:
    r"""Split a text at its semicolons, except those in strings, quoted names and comments.

    >>> split_queries("SELECT ';' AS a; -- one; two\nSELECT 2;")
    ["SELECT ';' AS a", '-- one; two\nSELECT 2']
    """
    parts = [""]
    for match in _PIECES.finditer(text):
        if match[0] == ";":
            parts.append("")
        else:
            parts[-1] += match[0]
    return [part.strip() for part in parts if re.sub(r"--[^\n]*|/\*.*?\*/", "", part, flags=re.DOTALL).strip()]


def batch_text(queries: Sequence[str], weights: Sequence[Number] = ()) -> str:
    """Write a batch as a call; equal weights are left out."""
    weighted = {"weights": list(weights)} if len(set(weights)) > 1 else {}
    return AnalysisCall(BATCH, {"queries": list(queries)} | weighted).text()


def batch_model(
    outputs: Sequence[Output],
    ratio: Sequence[float | None],
    model: Mapping[str, Any],
    left_out: LeftOut,
    analysis: str = "",
) -> dict[str, Any]:
    """Write one answer of a batch as a part of its release."""
    named = {"analysis": analysis} if analysis else {}
    return answer_json(outputs, ratio, model) | {"left_out": left_out.to_json()} | named


def batch_answers(release: Release) -> tuple[Release, ...]:
    """Give the answers of a batch, one for each question; each has the receipt and the cost of the whole batch."""
    if release.receipt.get("analysis") != BATCH:
        raise ParameterError("HB151", "This release is not a batch.", "Pass the release of a batch.")
    answers = release.model["answers"]
    return tuple(_answer(release, answers[place]) for _, place in release.model["questions"])


def _answer(release: Release, stored: Mapping[str, Any]) -> Release:
    outputs, ratio, model = read_answer(stored)
    left_out = LeftOut.from_json(stored["left_out"])
    rows = ratio or [None] * len(outputs[0].values)
    part = stored.get("analysis", "query")
    return replace(release, outputs=outputs, ratio=rows, model=model, left_out=left_out, packed=None, part=part)


class Asking(Protocol):
    """A session of any kind, which runs the batch."""

    def estimate(self, sql: str, **options: Unpack[Options]) -> Estimate:
        """Estimate the privacy cost and accuracy of a query."""
        ...

    def query(self, sql: str, *, key: str | None = None, **options: Unpack[Options]) -> Release:
        """Run a query."""
        ...


class AsyncAsking(Protocol):
    """An asynchronous session."""

    def estimate(self, sql: str, **options: Unpack[Options]) -> Awaitable[Estimate]:
        """Estimate the privacy cost and accuracy of a query."""
        ...

    def query(self, sql: str, *, key: str | None = None, **options: Unpack[Options]) -> Awaitable[Release]:
        """Run a query."""
        ...


class PendingAnswer:
    """The answer to one question of a batch, once the batch has run."""

    def __init__(self, sql: str) -> None:
        """Use `b.query`."""
        self.sql = sql
        self._release: Release | None = None

    def done(self) -> bool:
        """Tell whether the batch has run."""
        return self._release is not None

    def result(self) -> Release:
        """Return the answer."""
        if self._release is None:
            raise ParameterError(
                "HB793", "This question has no answer yet.", "Read answers after the `with` block of the batch."
            )
        return self._release

    def __repr__(self) -> str:
        return f"<question: {self.sql}>" if self._release is None else repr(self._release)


class _Questions:
    """The questions of a batch."""

    def __init__(self, *, epsilon: Number, delta: Number | None, key: str | None) -> None:
        self.release: Release | None = None
        self._options: Options = {"epsilon": epsilon, "delta": delta}
        self._key = key
        self._pending: list[PendingAnswer] = []
        self._open = True

    def query(self, sql: str) -> PendingAnswer:
        """Add a question; its answer is there after the block."""
        if not self._open:
            raise ParameterError("HB793", "This batch has ended.", "Open another batch.")
        self._pending.append(PendingAnswer(sql))
        return self._pending[-1]

    def _text(self) -> str:
        return batch_text([each.sql for each in self._pending])

    def _resolve(self, release: Release) -> None:
        self.release = release
        for pending, answer in zip(self._pending, batch_answers(release), strict=True):
            pending._release = answer  # noqa: SLF001 - a batch resolves its own questions

    def __iter__(self) -> Iterator[PendingAnswer]:
        return iter(self._pending)


class Batch(_Questions):
    """Questions that are asked together when the `with` block ends.

    If the block raises, nothing is asked. `release` is then None; otherwise it is the release of the whole batch.
    """

    def __init__(self, session: Asking, *, epsilon: Number, delta: Number | None, key: str | None) -> None:
        """Use `h.batch`."""
        super().__init__(epsilon=epsilon, delta=delta, key=key)
        self._session = session

    def estimate(self) -> Estimate:
        """Show what each question would get, and what it would get if the price were split evenly. Free."""
        return self._session.estimate(self._text(), **self._options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        if kind is None and self._pending:
            self._resolve(self._session.query(self._text(), key=self._key, **self._options))


class AsyncBatch(_Questions):
    """The batch of an asynchronous session: `async with h.batch(epsilon=1) as b:`."""

    def __init__(self, session: AsyncAsking, *, epsilon: Number, delta: Number | None, key: str | None) -> None:
        """Use `h.batch`."""
        super().__init__(epsilon=epsilon, delta=delta, key=key)
        self._session = session

    async def estimate(self) -> Estimate:
        """Show what each question would get, and what it would get if the price were split evenly. Free."""
        return await self._session.estimate(self._text(), **self._options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        if kind is None and self._pending:
            self._resolve(await self._session.query(self._text(), key=self._key, **self._options))


class Batching:
    """A session that can ask questions in batches."""

    def batch(
        self: Asking, *, epsilon: Number, delta: Number | None = None, key: str | None = None, fresh: bool = False
    ) -> Batch:
        """Ask many questions together, with one price: `with h.batch(epsilon=1) as b:`. See `hubbub.answers.batch`."""
        return Batch(self, epsilon=epsilon, delta=delta, key=request_key(key, fresh=fresh))


class AsyncBatching:
    """An asynchronous session that can ask questions in batches."""

    def batch(
        self: AsyncAsking, *, epsilon: Number, delta: Number | None = None, key: str | None = None, fresh: bool = False
    ) -> AsyncBatch:
        """Ask many questions together, with one price: `async with h.batch(epsilon=1) as b:`."""
        return AsyncBatch(self, epsilon=epsilon, delta=delta, key=request_key(key, fresh=fresh))
