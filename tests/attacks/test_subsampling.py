"""The same question in other words."""

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
    """20,000 wordings: shares of ½ and of pairs ¼ within 6 deviations; with 3 rows that is false below 1e-7."""
    texts = reworded("x", 20_000)
    seen = np.array([TOY.count(np.array([row], dtype=np.uint64), texts) > 0 for row in (1, 2, 77)])
    assert np.all(np.abs(seen.mean(axis=1) - 0.5) < 6 * 0.5 / 20_000**0.5)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert abs(np.mean(seen[one] & seen[other]) - 0.25) < 6 * 0.4331 / 20_000**0.5


@pytest.mark.row(72)
def test_rewording_redraws_the_sample_until_the_truth_is_out(run: Run) -> None:
    """The toy is seeded, so its figures are the same again; hubbub's is above its ceiling by luck below 1e-8."""
    study = run("subsampling", epsilons=("1",), trials=100)
    once, often, hubbub = study.findings
    assert once.score.share < 0.75  # one wording says little: so the toy seems to protect
    assert often.score.share > 0.95
    assert often.score.low > once.score.high
    assert hubbub.held
    assert hubbub.facts["charged of 12 sent"] == 12  # each wording that is new is paid for
    assert hubbub.facts["wordings"] == often.facts["wordings"]


def test_all_wordings_mean_the_same(run: Run) -> None:
    texts = reworded("diagnosis = 'asthma'", 30)
    assert len(set(texts)) == 30
    import duckdb

    with duckdb.connect() as made:
        made.execute("CREATE TABLE people AS SELECT * FROM (VALUES ('asthma'), ('none'), (NULL)) t(diagnosis)")
        found = {made.execute(f"SELECT count(*) FROM people WHERE {text}").fetchall()[0] for text in texts}
    assert found == {(1,)}
