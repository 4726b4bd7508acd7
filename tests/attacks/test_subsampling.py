"""Subsampling attack: the same query in other words."""

from collections.abc import Callable

import numpy as np
import pytest

from hubbub.attacks.base import AttackStudy
from hubbub.attacks.subsampling import Subsampled, reworded

Run = Callable[..., AttackStudy]

TOY = Subsampled(b"a key", 0.5)


def test_the_toy_gives_one_text_one_answer_and_another_text_another() -> None:
    rows = np.arange(200, dtype=np.uint64)
    assert TOY.count(rows, ["a", "a", "a"]).tolist() == [TOY.count(rows, ["a"])[0]] * 3
    answers = TOY.count(rows, reworded("age > 17", 40))
    assert len(set(answers.tolist())) > 5
    assert (Subsampled(b"another", 0.5).count(rows, ["a"]) != TOY.count(rows, ["a"]))[0]


def test_the_toy_samples_each_row_at_its_rate_and_rows_apart() -> None:
    """20,000 wordings: shares of ½, and of ¼ for pairs, within 6 deviations: false alarm below 1e-7 with 3 rows."""
    texts = reworded("x", 20_000)
    seen = np.array([TOY.count(np.array([row], dtype=np.uint64), texts) > 0 for row in (1, 2, 77)])
    assert np.all(np.abs(seen.mean(axis=1) - 0.5) < 6 * 0.5 / 20_000**0.5)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert abs(np.mean(seen[one] & seen[other]) - 0.25) < 6 * 0.4331 / 20_000**0.5


@pytest.mark.row(72)
def test_rewording_redraws_the_sample_until_the_truth_is_out(run: Run) -> None:
    """The toy system is seeded; hubbub's score exceeds its ceiling by chance with probability below 1e-8."""
    study = run("subsampling", epsilons=("1",), trials=100)
    once, often, hubbub = study.findings
    assert once.score.share < 0.75  # one wording reveals little, so the toy system seems to protect
    assert often.score.share > 0.95
    assert often.score.low > once.score.high
    assert hubbub.held
    assert hubbub.facts["charged of 12 sent"] == 12  # each new wording is charged
    assert hubbub.facts["wordings"] == often.facts["wordings"]


def test_all_wordings_mean_the_same(run: Run) -> None:
    texts = reworded("diagnosis = 'asthma'", 30)
    assert len(set(texts)) == 30
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE people AS SELECT * FROM (VALUES ('asthma'), ('none'), (NULL)) t(diagnosis)")
        counts = {connection.execute(f"SELECT count(*) FROM people WHERE {text}").fetchall()[0] for text in texts}
    assert counts == {(1,)}
