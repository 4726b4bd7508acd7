"""The audit of hubbub itself: it passes on correct code, and each part detects an error of its kind."""

import os
import random
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from hubbub.audit import nightly, randomness
from hubbub.audit.nightly import audit, sample_queries
from hubbub.audit.randomness import check_keystream
from hubbub.config import load
from hubbub.curator.opening import tables_of
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import Keystream, RandomSource
from hubbub.sql.dialects.base import Dialect

Numbers = tuple[Path, dict[str, int]]


def found(folder: Path, seconds: float = 1) -> dict[str, list[str]]:
    facts = audit(load(folder / "hubbub.yaml"), seconds=seconds)
    assert facts["sound"] is not any(part["problems"] for part in facts["parts"])
    assert all(part["cases"] >= 1 for part in facts["parts"])
    return {part["name"]: part["problems"] for part in facts["parts"]}


def test_right_code_is_sound_and_the_time_is_kept(numbers: Numbers) -> None:
    began = time.monotonic()
    assert not any(found(numbers[0], seconds=6).values())
    # every part looks at least once, and no look is long; a busy machine may take several times as long
    assert time.monotonic() - began < 60


def test_the_questions_of_declared_columns_cover_every_kind(numbers: Numbers) -> None:
    config = load(numbers[0] / "hubbub.yaml")
    texts = [text for _, text in sample_queries({name: each.table for name, each in config.datasets.items()})]
    for word in ("COUNT(*)", "SUM(", "AVG(", "MEDIAN(", "MAX(", "GROUP BY", "LIMIT 1", "COUNT(DISTINCT"):
        assert any(word in text for text in texts), word


def test_nothing_of_the_installation_is_charged(numbers: Numbers) -> None:
    ledger = numbers[0] / "hubbub-ledger" / "ledger.db"
    before = ledger.read_bytes()
    found(numbers[0])
    assert ledger.read_bytes() == before


def test_words_that_repeat_are_noticed(numbers: Numbers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Keystream, "words", lambda _, count: np.arange(count, dtype=np.uint64))
    assert check_keystream() == "The keystream repeated a word."


def test_a_child_that_sends_nothing_is_no_repeated_word(monkeypatch: pytest.MonkeyPatch) -> None:
    real, tries = randomness._sent_by_child, list[bytes]()

    def sent(stream: RandomSource) -> bytes:
        tries.append(b"" if not tries else real(stream))
        return tries[-1]

    monkeypatch.setattr(randomness, "_sent_by_child", sent)
    assert check_keystream() is None  # the second child sent its words
    assert [len(each) for each in tries] == [0, 8 * 40]
    monkeypatch.setattr(randomness, "_sent_by_child", lambda _: b"1234")
    assert "child did not send" in str(check_keystream())
    monkeypatch.undo()
    monkeypatch.setattr(Keystream, "words", failing_in_child(Keystream.words, os.getpid()))
    assert "child did not send" in str(check_keystream())


def failing_in_child(words: Any, parent: int) -> Any:
    def drawn(self: Keystream, count: int) -> Any:
        if os.getpid() != parent:
            raise MemoryError
        return words(self, count)

    return drawn


def test_noise_that_is_too_small_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    true = Laplace.sample

    def small(self: Any, value: Any, source: Any) -> Any:
        return value + (true(self, value, source) - value) // 2

    monkeypatch.setattr(Laplace, "sample", small)
    assert any(nightly._samplers(random.Random(seed)) for seed in range(6))


def test_outputs_that_refute_the_stated_loss_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the noise is planted; right noise is called wrong with probability 6·ALARM at most."""
    assert [nightly._outputs(random.Random(seed)) for seed in range(6)] == [None] * 6
    sample = Laplace.sample
    monkeypatch.setattr(
        Laplace, "sample", lambda self, value, source: value + (sample(self, value, source) - value) // 2
    )
    assert any(nightly._outputs(random.Random(seed)) for seed in range(6))


def test_a_loss_that_is_stated_too_small_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    true = Laplace.loss.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(Laplace, "loss", property(lambda self: type(true(self))(true(self).epsilon * 9 / 10)))
    assert any(nightly._mechanisms(random.Random(seed)) for seed in range(12))


def test_values_that_are_not_clamped_are_noticed(numbers: Numbers, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load(numbers[0] / "hubbub.yaml")
    check = nightly._neighbors(config, tables_of(config), [("visits", "SELECT SUM(cost) AS s FROM visits")])
    assert not any(check(random.Random(seed)) for seed in range(3))
    monkeypatch.setattr(Dialect, "between", lambda _, text, *__: f"CASE WHEN TRUE THEN {text} END")

    def noticed(seed: int) -> bool:
        try:
            return check(random.Random(seed)) is not None
        except duckdb.ConversionException:  # far beyond the bounds: the value does not fit the type
            return True

    (first, *_) = [seed for seed in range(12) if noticed(seed)]
    part = nightly._run_part("neighbors", "", check, random.Random(first), 1, lambda _: None)
    assert part.problems
