"""Token attack: recovery of hashed words."""

from collections.abc import Callable
from hashlib import sha256
from pydoc_data.topics import topics

import numpy as np
import pytest

from hubbub.attacks.base import AttackStudy
from hubbub.attacks.table import AttackTable
from hubbub.attacks.tokens import by_neighbors, by_rank, hashed, statistics

Run = Callable[..., AttackStudy]

LINES = [["a", "b", "a"], ["a", "c"], ["b"]]


def test_tokens_and_neighbors_are_counted_within_lines() -> None:
    stats = statistics(LINES, 3)
    assert stats.tokens == ("a", "b", "c")
    assert stats.shares.tolist() == [3 / 6, 2 / 6, 1 / 6]
    pairs = {(stats.tokens[i], stats.tokens[j]): stats.pairs[i, j] * 6 for i in range(3) for j in range(3)}
    assert {pair: count for pair, count in pairs.items() if count} == {("a", "b"): 1, ("b", "a"): 1, ("a", "c"): 1}


def test_a_hash_hides_nothing_of_the_counts() -> None:
    hidden = statistics(hashed(LINES, b"key"), 3)
    assert hidden.shares.tolist() == statistics(LINES, 3).shares.tolist()
    assert set(hidden.tokens).isdisjoint({"a", "b", "c"})
    assert hashed(LINES, b"key") != hashed(LINES, b"another key")


def test_a_log_that_the_attacker_has_a_copy_of_is_read_whole(generator: np.random.Generator) -> None:
    """Neighbors distinguish words of equal rank, with certainty if the shares are equal."""
    words = [f"w{n}" for n in range(30)]
    lines = [[words[n] for n in (start, *generator.integers(0, 30, 8), (start * 7) % 30)] for start in [*range(30)] * 9]
    hidden = hashed(lines, b"key")
    log, reference = statistics(hidden, 30), statistics(lines, 30)
    truth = {
        secret: word for own, line in zip(hidden, lines, strict=True) for secret, word in zip(own, line, strict=True)
    }
    guesses = by_neighbors(log, reference)
    assert all(guesses[token] == truth[token] for token in log.tokens)


@pytest.mark.row(74)
def test_real_words_are_read_again_by_rank_and_most_by_their_neighbors(run: Run) -> None:
    """Half of Python's help pages, hashed, against the other half; the split is seeded.

    The figures are exact for the help pages of Python 3.11.7, and bounds for others.
    """
    study = run("tokens", epsilons=("1",))
    rank, neighbors, hubbub = study.findings
    if sha256("".join(topics[name] for name in sorted(topics)).encode()).hexdigest().startswith("37d06970fc926e60"):
        assert (rank.score.right, neighbors.score.right) == (14, 86)
        assert float(neighbors.facts["share of the text"]) == pytest.approx(0.9505, abs=1e-4)
    assert rank.score.right >= 4  # blind guessing: 1 of 100
    assert neighbors.score.right >= 60
    assert float(neighbors.facts["share of the text"]) > 0.7
    assert hubbub.held
    assert f"neighbors recovered {neighbors.score.right} words" in study.words[0]
    assert study.words[0].endswith(f"ranks alone recovered {rank.score.right}.")


@pytest.mark.row(74)
def test_a_column_of_a_table_is_a_log_too(run: Run, generator: np.random.Generator) -> None:
    vocabulary = np.array([f"{a}{b}x" for a in "abcdefgh" for b in "abcdefgh"], dtype=object)
    weights = 1 / np.arange(1, 65) ** 1.3
    chosen = generator.choice(vocabulary, 20_000, p=weights / weights.sum())
    table = AttackTable("log", {"id": np.arange(20_000), "words": chosen})
    study = run("tokens", table, most="20", epsilons=("1",), trials="200")
    assert study.findings[0].score.right >= 8
    assert by_rank(statistics([["a"]], 1), statistics([["b"]], 1)) == {"a": "b"}
