"""Groups that nobody declared: what is said before and after the charge, and how long a budget's δ lasts."""

from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from hubbub.accounting.filters import Budget, filter_limits
from hubbub.accounting.refusal import CapError
from hubbub.answers.groups import GroupThreshold
from hubbub.audit.receipt import check_receipt
from hubbub.curator.question import GROUPS_SHARE
from hubbub.curator.session import Session, open_session

YAML = """
version: 1
datasets:
  visits:
    source: visits.parquet
    unit: {{column: patient, groups: {groups}, rows: {rows}}}
    columns: {{patient: {{type: integer}}, word: {{type: text}}, age: {{bounds: [0, 100]}}}}
    budget: {{epsilon: 6, delta: {delta}}}
  people:
    source: visits.parquet
    unit: row
    columns: {{word: {{type: text}}, age: {{bounds: [0, 100]}}}}
    budget: {{epsilon: 6, delta: {delta}}}
analysts: {{ana: {{visits: {{epsilon: 6, delta: {delta}}}, people: {{epsilon: 6, delta: {delta}}}}}}}
"""
COUNT = "SELECT word, COUNT(*) AS n FROM visits GROUP BY word"


def opened(path: Path, *, groups: int = 12, rows: int = 4, delta: str = "1e-9", patients: int = 3000) -> Session:
    """Each patient has six words: five of ten that others have too, and one of their own."""
    with duckdb.connect() as made:
        made.execute(
            f"COPY (SELECT p AS patient, CASE WHEN j = 5 THEN 'own ' || p ELSE 'w' || ((p + 2 * j) % 10) END AS word, "
            f"p % 100 AS age FROM range({patients}) a(p), range(6) b(j)) TO '{path}/visits.parquet'"
        )
    (path / "hubbub.yaml").write_text(YAML.format(groups=groups, rows=rows, delta=delta))
    return open_session(path / "hubbub.yaml")


def test_twenty_discoveries_in_a_row_are_within_a_small_delta(tmp_path: Path) -> None:
    """Each takes at most a hundredth of the δ that is left; estimates count them down."""
    with opened(tmp_path) as session:
        own = filter_limits(Budget(Fraction(6), Fraction("1e-9"))).delta
        left, fits = own, []
        for number in range(20):
            sql = f"SELECT word, COUNT(*) AS n FROM visits WHERE age > {number} GROUP BY word"
            estimate = session.estimate(sql, epsilon="0.05")
            assert estimate.admitted, number
            assert estimate.fits is not None
            fits.append(estimate.fits)
            release = session.query(sql, epsilon="0.05")
            assert not release.replayed
            assert release.delta == estimate.delta == Fraction("1e-9") * GROUPS_SHARE
            assert estimate.delta / 10 <= left / 100
            left -= estimate.delta / 10
            assert check_receipt(release.document()).problems == []
        assert fits == sorted(fits, reverse=True)
        assert fits[0] > 20


def test_a_repeated_discovery_is_free_however_much_delta_is_left(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        first = session.query(COUNT, epsilon="0.1")
        for number in range(3):
            session.query(f"{COUNT} HAVING COUNT(*) > {number}", epsilon="0.1")
        assert session.query(COUNT, epsilon="0.1").replayed
        assert session.query(COUNT, epsilon="0.1").rows == first.rows


def test_an_estimate_blames_delta_where_delta_is_short(tmp_path: Path) -> None:
    """Two queries take half of the budget's δ each, explicitly: the third lacks δ, and not ε."""
    with opened(tmp_path) as session:
        for number in range(2):
            session.query(f"{COUNT} HAVING COUNT(*) > {number}", epsilon="0.1", delta="4.9e-10")
        asked = f"{COUNT} HAVING COUNT(*) > 7"
        estimate = session.estimate(asked, epsilon="0.1", delta="4.9e-10")
        assert not estimate.admitted
        assert estimate.fits == 0
        assert "costs δ=" in estimate.refusal
        assert "is left" in estimate.refusal
        assert "--delta" in estimate.refusal
        assert "up to ε" not in repr(estimate)
        with pytest.raises(CapError) as refusal:
            session.query(asked, epsilon="0.1", delta="4.9e-10")
        assert f"{refusal.value.message} {refusal.value.remedy}" == estimate.refusal
        offered = estimate.refusal.partition("--delta ")[2].partition(". Or")[0]
        assert session.estimate(asked, epsilon="0.1", delta=offered).admitted


def test_an_estimate_says_how_many_people_a_group_needs(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        estimate = session.estimate(COUNT, epsilon=1)
        assert estimate.groups is not None
        assert estimate.groups.sentence() in repr(estimate)
        assert estimate.groups.unit == "patient"
        assert estimate.groups.alone < estimate.groups.spread
        assert type(estimate).from_json(estimate.to_json()) == estimate
        release = session.query(COUNT, epsilon=1)
        # what is said before and after is the same, and every group of the answer has about so many patients
        assert GroupThreshold.from_receipt(release.receipt) == estimate.groups
        assert session.estimate("SELECT COUNT(*) AS n FROM visits", epsilon=1).groups is None


@pytest.mark.parametrize(("groups", "epsilon"), [(12, 1), (1, 1), (2, 4)])
def test_as_many_people_as_stated_bring_a_group_to_light(tmp_path: Path, groups: int, epsilon: int) -> None:
    """Groups of 0.6 times the stated number are rare, those of 1.6 times are the rule: patients with one word each."""
    with opened(tmp_path, groups=groups) as session:
        estimate = session.estimate(COUNT, epsilon=epsilon)
        assert estimate.groups is not None
        sizes = {"few": round(estimate.groups.alone * 0.6), "many": round(estimate.groups.alone * 1.6)}
    with duckdb.connect() as made:
        made.execute("CREATE TABLE v (patient BIGINT, word TEXT, age BIGINT)")
        patient = 0
        for name, size in sizes.items():
            for copy in range(100):
                made.execute(f"INSERT INTO v SELECT {patient} + i, '{name} {copy}', 1 FROM range({size}) t(i)")
                patient += size
        made.execute(f"COPY v TO '{tmp_path}/visits.parquet'")
    with open_session(tmp_path / "hubbub.yaml") as session:
        shown = [str(row[0]) for row in session.query(COUNT, epsilon=epsilon).rows]
    # 0.4 times the threshold is at least 2.6 deviations of the noise: above 30 in 100 has probability below 1e-9
    assert sum(word.startswith("few") for word in shown) < 30
    assert sum(word.startswith("many") for word in shown) > 70


def test_a_scarce_answer_is_announced_and_explained(tmp_path: Path) -> None:
    """At ε = 0.001 a group needs tens of thousands: nothing is shown, and all say so."""
    with opened(tmp_path) as session:
        estimate = session.estimate(COUNT, epsilon="0.001")
        assert estimate.groups is not None
        assert estimate.groups.scarce
        assert estimate.groups.enough is not None
        assert estimate.groups.enough > Fraction(1, 1000)
        assert any("Only very large groups" in warning for warning in estimate.warnings)
        enough = session.estimate(COUNT, epsilon=estimate.groups.enough)
        assert enough.groups is not None
        assert enough.groups.alone <= 100
        release = session.query(COUNT, epsilon="0.001")
        assert release.rows == []
        (note,) = release.notes
        assert note.startswith("No group was shown. A group needs about")
        assert note in repr(release)
        assert release.to_json()["notes"] == [note]


def test_a_known_number_of_units_gives_the_most_groups_that_can_appear() -> None:
    known = GroupThreshold(2000, 6325, "patient", units=4044, enough=Fraction(5))
    assert known.most == 2
    assert known.warning().startswith("At most 2 groups can be shown: the dataset has about 4,044")
    assert GroupThreshold(5000, 5000, None, units=4044).warning().startswith("No group can be shown")
    assert not GroupThreshold(20, 63, "patient", units=4044).scarce
    assert GroupThreshold.from_json(known.to_json()) == known


def test_declared_groups_and_limits_have_their_own_notes(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        assert session.query("SELECT COUNT(*) AS n FROM visits", epsilon=1).notes == ()
        (note,) = session.query(f"{COUNT} ORDER BY n DESC LIMIT 2", epsilon=1).notes
        assert note.startswith("Smaller groups are not shown.")


def test_rows_as_units_share_the_noise_of_their_count(tmp_path: Path) -> None:
    """COUNT(*) of rows is the count that selects: one noise with the whole ε, and not two."""
    with opened(tmp_path) as session:
        release = session.query("SELECT word, COUNT(*) AS n FROM people GROUP BY word", epsilon=1)
        (draw,) = release.receipt["draws"]
        assert draw["kind"] == "threshold"
        assert draw["noise"]["noise"] == {"mechanism": "laplace", "sensitivity": 1, "scale": "1"}
        assert check_receipt(release.document()).problems == []
        assert len(release.rows) == 10


def test_the_default_share_is_admitted_a_thousand_times_by_delta_alone() -> None:
    budget = Budget(Fraction(6), Fraction("1e-9"))
    # a tenth of the cap's δ is for failures, and so is a tenth of a query's share
    assert filter_limits(budget).delta / (budget.delta * GROUPS_SHARE / 10) == 1000
