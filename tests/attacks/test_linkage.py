"""Linkage attack and uniqueness of rows."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.attacks.base import AttackStudy, percent
from hubbub.attacks.linkage import COIN, linked, uniqueness
from hubbub.attacks.table import AttackTable, read
from hubbub.errors import AttackError

Run = Callable[..., AttackStudy]
ACS = Path(__file__).parents[3] / "shared" / "data" / "national2019.csv"


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=60))
def test_uniqueness_counts_what_a_count_by_hand_counts(rows: list[tuple[int, int]]) -> None:
    first, second = zip(*rows, strict=True)
    report = uniqueness(AttackTable("t", {"a": np.array(first), "b": np.array(second)}), ["a", "b"])
    sizes = Counter(rows)
    assert report.unique == sum(size == 1 for size in sizes.values())
    assert report.few == sum(size for size in sizes.values() if 2 <= size <= 4)
    assert (report.groups, report.largest, report.rows) == (len(sizes), max(sizes.values()), len(rows))


@pytest.mark.row(73)
@pytest.mark.skipif(not ACS.exists(), reason="needs the ACS excerpt, which is not part of the project")
def test_half_of_real_people_are_alone_in_six_columns_and_almost_all_in_all() -> None:
    table = read(ACS)
    known = ("PUMA", "AGEP", "SEX", "RAC1P", "MSP", "EDU")
    assert table.rows == 27_253
    assert round(uniqueness(table, known).share, 3) == 0.519
    assert round(uniqueness(table, tuple(table.columns)).share, 3) == 0.997


@pytest.mark.row(73)
def test_a_table_without_names_gives_secrets_to_who_knows_a_few_columns(run: Run) -> None:
    """The simulated table is seeded. hubbub's scores exceed their ceilings by chance with probability below 1e-7."""
    study = run("linkage", quasi="birth,sex,area")
    by_name = {each.target: each for each in study.findings}
    unique = by_name["names removed; known: birth, sex, area"]
    assert int(unique.facts["unique rows"]) / int(unique.facts["rows"]) > 0.7
    assert unique.score.share > 0.9
    assert by_name["names removed; known: birth"].score.share < 0.65
    coarse = by_name["names removed, numbers in tens; all known"]
    assert 0.5 < coarse.score.low < coarse.score.share < unique.score.low
    assert all(each.held for each in study.findings)
    share = int(unique.facts["unique rows"]) / int(unique.facts["rows"])
    assert study.words[0].startswith(f"{percent(share)} of the 2,000 rows are unique in birth, sex and area:")
    coarse_share = int(coarse.facts["unique rows"]) / int(coarse.facts["rows"])
    assert f"With numbers rounded to tens, {percent(coarse_share)} are unique." in study.words


def test_who_is_alone_is_read_off_and_who_is_not_is_guessed_by_the_majority() -> None:
    codes = np.array([0, 1, 1, 1, 2, 2])
    secrets = np.array([True, False, False, True, True, True])
    assert linked(codes, secrets, np.random.default_rng(0)).tolist() == [True, False, False, False, True, True]


def test_the_coin_has_a_column_of_its_own(run: Run) -> None:
    with pytest.raises(AttackError, match=COIN):
        run("linkage", AttackTable("t", {COIN: np.arange(4)}))


def test_missing_values_and_odd_names_are_no_obstacle(run: Run) -> None:
    table = AttackTable(
        "odd",
        {
            "a b": np.array(["x", "", 'q"', "x"] * 10, dtype=object),
            "pay": np.array([1.5, np.nan, np.nan, 2.0] * 10),
            "flag": np.array([True, False, True, False] * 10),
        },
    )
    assert run("linkage", table, epsilons=("1",)).findings[-1].held
