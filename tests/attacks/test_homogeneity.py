"""Groups of k, and gaps where counts are small."""

from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.attacks.base import AttackStudy, percent
from hubbub.attacks.homogeneity import commonest, grouped, homogeneous, suppressed
from hubbub.attacks.simulated import clinic
from hubbub.attacks.table import AttackTable

Run = Callable[..., AttackStudy]


@pytest.mark.parametrize("k", [2, 3, 5, 40])
def test_nobody_is_in_a_group_of_fewer_than_k(k: int, generator: np.random.Generator) -> None:
    table = clinic(203, generator)
    sizes = np.bincount(grouped(table, ("birth", "sex", "area"), k))
    assert sizes.min() >= k
    assert sizes.max() < 2 * k
    assert sizes.sum() == 203


def test_groups_are_of_people_who_are_alike(generator: np.random.Generator) -> None:
    table = clinic(2000, generator)
    groups = grouped(table, ("birth", "sex", "area"), 5)
    spread = [np.ptp(table.column("birth")[groups == group]) for group in range(50)]
    assert max(spread) <= 1  # sorted by birth year, about twenty people per year


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=50))
def test_groups_are_told_and_guessed_as_by_hand(rows: list[tuple[int, int]]) -> None:
    indexes = {group: index for index, group in enumerate(sorted({group for group, _ in rows}))}
    groups = np.array([indexes[group] for group, _ in rows])
    values = np.array([value for _, value in rows])
    by_group = defaultdict(list)
    for group, value in rows:
        by_group[group].append(value)
    sure, guess = homogeneous(groups, values), commonest(groups, values)
    for index, (group, _) in enumerate(rows):
        assert sure[index] == (len(set(by_group[group])) == 1)
        assert Counter(by_group[group])[int(guess[index])] == max(Counter(by_group[group]).values())


@pytest.mark.row(93)
def test_k_anonymity_and_hidden_counts_leak_by_what_they_choose_to_show(run: Run) -> None:
    """The simulated table is seeded. hubbub's scores exceed their ceilings by chance with probability below 1e-7."""
    study = run("homogeneity", k="3")
    secret, coin, known, gaps, *ours = study.findings
    assert secret.score.share > secret.score.chance
    sure = float(secret.facts["revealed with certainty"])
    assert study.words[0] == (
        f"A 3-anonymous release of clinic reveals diagnosis with certainty for {percent(sure)} of the rows, because all"
        " rows of their group have the same value."
    )
    # three equal coins: 2·2⁻³; 6 deviations
    assert coin.facts["revealed with certainty"] == pytest.approx(0.25, abs=0.06)
    assert coin.score.share == pytest.approx(
        0.75, abs=0.06
    )  # the majority of three contains one's own coin in 3 of 4 cases
    assert known.score.share == gaps.score.share == 1.0
    assert all(each.held for each in ours)


@pytest.mark.row(93)
def test_the_loss_of_a_hidden_count_is_infinite() -> None:
    """Neighbors have disjoint outputs: a count of k is shown, a count of k − 1 never is."""
    assert suppressed(np.array([4, 5, 6, 0]), 5).tolist() == [-1, 5, 6, -1]
    assert not set(suppressed(np.array([4]), 5).tolist()) & set(suppressed(np.array([5]), 5).tolist())


def test_a_column_that_follows_from_what_is_known_is_told_for_all(run: Run) -> None:
    area = np.repeat(np.arange(20), 10)
    table = AttackTable("t", {"area": area, "club": np.array(["a", "b"], dtype=object)[area % 2]})
    study = run("homogeneity", table, quasi="area", sensitive="club", epsilons=("1",))
    assert study.findings[0].facts["revealed with certainty"] == 1.0
    assert study.findings[0].score.share == 1.0
    assert "reveals club with certainty for 100% of the rows" in study.words[0]
