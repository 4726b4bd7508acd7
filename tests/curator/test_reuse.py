"""Free answers: what earlier releases determine is not charged again, and is a release of its own."""

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.store import EntryFilter
from hubbub.answers.estimate import Estimate
from hubbub.audit.ledger_check import compare_with_ledger
from hubbub.audit.receipt import check_receipt
from hubbub.curator import earlier, reuse
from hubbub.curator.session import Session, open_session
from hubbub.errors import BudgetError, HubbubError, ParameterError, QueryError

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: {unit}
    columns:
      person: {{}}
      site: {{values: [a, b, c], required: true}}
      female: {{type: boolean, nullable: true}}
      word: {{}}
      cost: {{type: real, bounds: [0, 100], step: 0.5}}
    budget: {{epsilon: 1000, delta: 1e-6}}
analysts:
  ana: {{visits: {{epsilon: 20}}}}
  ben: {{visits: {{epsilon: 20}}}}
  eve: {{visits: {{epsilon: 20}}}}
groups: {{}}
"""
BOTH = "SELECT site, female, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY site, female"
SITES = "SELECT site, COUNT(*) AS n FROM visits GROUP BY site"
TOTAL = "SELECT COUNT(*) AS n FROM visits"

Opener = Callable[..., Session]


def write(folder: Path, *, unit: str = "row", rows: int = 600) -> None:
    lines = [f"p{i % 50},{'abc'[i % 3]},{('true', 'false', '')[i // 7 % 3]},w{i % 4},{i % 90}" for i in range(rows)]
    (folder / "visits.csv").write_text("\n".join(["person,site,female,word,cost", *lines]) + "\n")
    (folder / "hubbub.yaml").write_text(YAML.format(unit=unit).replace("groups: {}\n", ""))


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opener]:
    with ExitStack() as stack:

        def opener(analyst: str = "ana", **settings: Any) -> Session:
            if not (tmp_path / "hubbub.yaml").exists() or settings:
                write(tmp_path, **settings)
            return stack.enter_context(open_session(tmp_path / "hubbub.yaml", analyst=analyst))

        yield opener


def spent(session: Session) -> Fraction:
    return sum((charge.epsilon for charge in session.releases()), Fraction(0))


def test_what_an_earlier_release_determines_is_free(opened: Opener) -> None:
    session = opened()
    first = session.query(BOTH, epsilon=2, raw=True)
    estimate = session.estimate(SITES, epsilon="0.1")
    assert estimate.free is not None
    assert estimate.free.enough
    assert "costs nothing" in repr(estimate)
    before = spent(session)
    derived = session.query(SITES, epsilon="0.1", raw=True)
    assert spent(session) == before == 2
    assert derived.epsilon == 0
    assert "computed from release 2" in repr(derived)
    noisy = dict.fromkeys("abc", 0.0)
    for site, _, count, _ in first.rows:
        noisy[str(site)] += float(count)  # type: ignore[arg-type]
    assert {str(site): float(n) for site, n in derived.rows} == pytest.approx(noisy)  # type: ignore[arg-type]
    # the interval is that of three noises (of scale 1, where the exact one is 3): wider than one, narrower than three
    (low, high), one = derived.intervals[0][1], first.intervals[0][2]
    assert None not in (low, high, *one)
    assert 1.5 < (high - low) / (one[1] - one[0]) < 2.1  # type: ignore[operator]


def test_a_derived_answer_is_a_release_of_its_own(opened: Opener, tmp_path: Path) -> None:
    session = opened()
    session.query(BOTH, epsilon=2)
    derived = session.query(SITES, epsilon="0.1")
    listed = session.releases()
    assert (listed[0].epsilon, listed[0].query) == (Fraction(0), SITES)
    assert session.release(listed[0].id).rows == derived.rows
    again = session.query(SITES, epsilon="0.05")
    assert again.replayed
    assert again.rows == derived.rows
    assert len(session.releases()) == 2
    derived.export(tmp_path / "derived.csv")
    assert (tmp_path / "derived.csv").read_text() == derived.to_csv()


def test_the_independent_checker_derives_it_again(opened: Opener, tmp_path: Path) -> None:
    session = opened()
    session.query(BOTH, epsilon=2)
    session.query(BOTH, epsilon=1, fresh=True)
    document = json.loads(json.dumps(session.query(SITES, epsilon="0.1").document()))
    assert check_receipt(document).sound
    assert len(document["receipt"]["derived"]["sources"]) == 2
    store = SqliteStore(next(tmp_path.rglob("ledger.db")), read_only=True)
    with store.snapshot() as snapshot:
        found = compare_with_ledger(document, snapshot)
    store.close()
    assert not found.problems
    assert any("follow exactly" in line for line in found.lines)


def test_a_finer_price_is_charged_and_combined_with_nothing(opened: Opener) -> None:
    session = opened()
    session.query(BOTH, epsilon=1)
    estimate = session.estimate(SITES, epsilon=2)
    assert estimate.free is not None
    assert not estimate.free.enough
    assert "or ε = 2 for n ±" in repr(estimate)
    assert Estimate.from_json(json.loads(json.dumps(estimate.to_json()))).free == estimate.free
    assert session.query(SITES, epsilon=2).epsilon == 2
    assert session.query(TOTAL, free=True).epsilon == 0


def test_fresh_and_a_key_insist_on_a_new_draw(opened: Opener) -> None:
    session = opened()
    session.query(SITES, epsilon=1)
    assert session.query(TOTAL, epsilon="0.1").epsilon == 0
    assert session.query(TOTAL, epsilon="0.1", fresh=True).epsilon == Fraction(1, 10)
    assert session.query(SITES, epsilon="0.1", key="mine").epsilon == Fraction(1, 10)


def test_a_query_without_a_price_is_answered_only_for_free(opened: Opener) -> None:
    session = opened()
    with pytest.raises(ParameterError, match="HB132"):
        session.query(TOTAL)
    with pytest.raises(ParameterError, match="HB167"):
        session.query(TOTAL, free=True)
    assert session.releases() == ()
    session.query(SITES, epsilon=1)
    assert session.query(TOTAL).epsilon == 0
    with pytest.raises(ParameterError, match="HB167"):
        session.query("SELECT COUNT(*) FROM visits WHERE cost > 3", free=True, epsilon=1)


def test_a_query_that_was_charged_keeps_its_own_answer(opened: Opener) -> None:
    session = opened()
    own = session.query(TOTAL, epsilon="0.1")
    session.query(SITES, epsilon=5)
    assert session.query(TOTAL, epsilon="0.1").rows == own.rows
    assert session.query(TOTAL, epsilon="0.2").epsilon == 0


def test_free_answers_need_no_budget(opened: Opener) -> None:
    session = opened()
    session.query(SITES, epsilon=20)
    with pytest.raises(BudgetError):
        session.query("SELECT COUNT(*) FROM visits WHERE cost > 3", epsilon="0.1")
    assert session.query(TOTAL, epsilon="0.1").epsilon == 0


def test_another_version_of_the_data_is_no_source(opened: Opener, tmp_path: Path) -> None:
    session = opened()
    session.query(SITES, epsilon=1)
    session.close()
    changed = opened("ana", rows=601)
    # an estimate reads no data: it is about the version that was last asked about
    assert changed.estimate(TOTAL, epsilon="0.1").free is not None
    assert changed.query(TOTAL, epsilon="0.1").epsilon == Fraction(1, 10)


def test_a_planted_source_of_another_version_would_be_wrong(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A planted error: the version of a charge is not looked at. The checker refuses such an answer."""
    session = opened()
    session.query(SITES, epsilon=1)
    session.close()
    found = earlier.EarlierReleases.sources

    def careless(self: Any, snapshot: Any, owners: Any, dataset: str, version: str, unseen: Any, **query: Any) -> Any:
        return [
            source
            for old in (version, *{e.version for e in snapshot.entries(EntryFilter(kind="charge"))})
            for source in found(self, snapshot, owners, dataset, old, unseen, **query)
        ]

    monkeypatch.setattr(earlier.EarlierReleases, "sources", careless)
    changed = opened("ana", rows=900)
    document = json.loads(json.dumps(changed.query(TOTAL, epsilon="0.1").document()))
    store = SqliteStore(next(tmp_path.rglob("ledger.db")), read_only=True)
    with store.snapshot() as snapshot:
        problems = compare_with_ledger(document, snapshot).problems
    store.close()
    assert "about other data" in problems[0]


def test_other_declarations_are_no_source(opened: Opener, tmp_path: Path) -> None:
    session = opened()
    session.query(SITES, epsilon=1)
    session.close()
    text = (tmp_path / "hubbub.yaml").read_text()
    (tmp_path / "hubbub.yaml").write_text(text.replace("bounds: [0, 100]", "bounds: [0, 50]"))
    assert opened().estimate(TOTAL, epsilon="0.1").free is None


def test_selected_groups_are_no_source(opened: Opener) -> None:
    session = opened()
    release = session.query("SELECT word, COUNT(*) AS n FROM visits GROUP BY word", epsilon=3)
    assert "measured" not in release.receipt
    assert session.estimate("SELECT COUNT(*) FROM visits WHERE word = 'w1'", epsilon="0.1").free is None


def test_a_derived_answer_is_no_source(opened: Opener) -> None:
    session = opened()
    session.query(BOTH, epsilon=2)
    derived = session.query(SITES, epsilon="0.1")
    estimate = session.estimate(TOTAL, epsilon="0.01")
    assert "measured" not in derived.receipt
    assert estimate.free is not None
    assert estimate.free.releases == (2,)


def test_nobody_can_tell_whether_others_have_a_source(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read from the ledger, what is shown and what is charged is the same, whatever others asked."""
    session, other = opened("ana"), opened("ben")
    read: list[int] = []
    shown = []
    original = earlier.read_source

    def reading(number: int, paper: Any) -> Any:
        read.append(number)
        return original(number, paper)

    monkeypatch.setattr(earlier, "read_source", reading)
    for asked in (False, True):
        if asked:
            session.query(BOTH, epsilon=5)
            read.clear()
        estimate = other.estimate(SITES, epsilon="0.1")
        shown.append((estimate.free, estimate.expected, estimate.derivation))
    assert shown[0] == shown[1]
    assert read == []
    assert other.query(SITES, epsilon="0.1").epsilon == Fraction(1, 10)


def test_whether_an_answer_is_free_does_not_depend_on_noise(opened: Opener, tmp_path: Path) -> None:
    """The offers for two neighboring datasets, with other noise, are equal but for nothing."""
    offers = []
    for rows in (600, 601):
        folder = tmp_path / str(rows)
        folder.mkdir()
        write(folder, rows=rows)
        with open_session(folder / "hubbub.yaml", analyst="ana") as session:
            session.query(BOTH, epsilon=2)
            session.query(BOTH, epsilon=1, fresh=True)
            offers.append([session.estimate(text, epsilon="0.1").free for text in (SITES, TOTAL, BOTH)])
    assert offers[0] == offers[1]
    assert None not in offers[0]


def test_people_with_several_rows_say_so(opened: Opener) -> None:
    session = opened("ana", unit="{column: person, groups: 9, rows: 4}")
    session.query(BOTH, epsilon=19)
    derived = session.query(TOTAL, epsilon="0.1")
    assert derived.epsilon == 0
    assert any("at least as many rows of each privacy unit" in note for note in derived.notes)
    # 12 rows of a person are in 3 sites and 3 values of female: the query alone counts 4 of them
    # the sum of nine noises of a scale below 4 is beyond 100 once in 10⁷ answers
    assert abs(float(derived.rows[0][0]) - 600) < 100  # type: ignore[arg-type]


def test_intervals_of_derived_answers_cover(opened: Opener) -> None:
    """At a high price the interval of every derived number holds the exact one."""
    session = opened()
    session.query(BOTH, epsilon=15)
    derived = session.query("SELECT site, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY site", epsilon="0.01")
    exact = {site: [200, sum(i % 90 for i in range(600) if "abc"[i % 3] == site)] for site in "abc"}
    for row, ends in zip(derived.rows, derived.intervals, strict=True):
        for value, (low, high) in zip(exact[str(row[0])], ends[1:], strict=True):
            assert low is not None
            assert high is not None
            # three times the half width: missed once in 10⁸ answers
            middle = (low + high) / 2
            assert abs(value - middle) <= 3 * (high - low)


def test_the_key_of_a_derived_answer_names_its_sources(opened: Opener) -> None:
    session = opened()
    session.query(BOTH, epsilon=1)
    one = session.query(TOTAL, free=True)
    session.query(BOTH, epsilon=2)
    two = session.query(TOTAL, free=True)
    assert [source["charge"] for source in one.receipt["derived"]["sources"]] != [
        source["charge"] for source in two.receipt["derived"]["sources"]
    ]
    assert not two.replayed


def test_only_facts_decide(opened: Opener) -> None:
    """The description that decides has no sum."""
    session = opened()
    release = session.query(SITES, epsilon=1)
    source = earlier.read_source(2, release.receipt)
    assert source is not None
    assert "sums" not in source.facts
    changed = copy.deepcopy(dict(release.receipt))
    changed["measured"]["sums"] = [[0, 0, 0]]
    assert earlier.read_source(2, changed) == source


def test_a_query_with_a_price_is_answered_for_free_unless_the_owner_says_asked(tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / "hubbub.yaml"
    path.write_text(path.read_text().replace("    unit: row\n", "    unit: row\n    reuse: asked\n"))
    with open_session(path, analyst="ana") as session:
        session.query(BOTH, epsilon=2)
        estimate = session.estimate(SITES, epsilon="0.1")
        assert estimate.free is not None
        assert not estimate.free.enough
        assert "ask without a price" in repr(estimate)
        assert session.query(SITES, epsilon="0.1").epsilon == Fraction(1, 10)
        assert session.query(TOTAL, free=True).epsilon == 0
        assert session.query(TOTAL).replayed


def test_a_new_draw_and_old_ones_are_as_exact_together_for_less(opened: Opener) -> None:
    session = opened()
    session.query(SITES, epsilon="0.1")
    estimate = session.estimate(SITES, epsilon="0.12")
    assert estimate.free is not None
    assert estimate.free.combined is not None
    assert 0 < estimate.free.combined < Fraction(12, 100)
    assert "combine both (combine=True)" in repr(estimate)
    answer = session.query(SITES, epsilon="0.12", combine=True)
    paid = session.releases()[1]
    assert (paid.epsilon, paid.query) == (estimate.free.combined, SITES)
    assert [each["charge"] for each in answer.receipt["derived"]["sources"]] == [2, paid.id]
    assert spent(session) == Fraction(1, 10) + estimate.free.combined
    for (low, high), bought in zip((ends[1] for ends in answer.intervals), "abc", strict=True):
        assert low is not None, bought
        assert high is not None
        assert (high - low) / 2 <= estimate.expected[0].plus_minus * 1.01
    again = session.query(SITES, epsilon="0.12", combine=True)
    assert again.rows == answer.rows
    assert spent(session) == Fraction(1, 10) + estimate.free.combined


def test_combining_never_charges_for_what_was_charged_before(opened: Opener) -> None:
    session = opened()
    first = session.query(SITES, epsilon=1)
    again = session.query(SITES, epsilon=1, combine=True)
    assert again.replayed
    assert again.rows == first.rows
    assert spent(session) == 1


def test_what_combining_does_not_make_cheaper_is_charged_as_ever(opened: Opener) -> None:
    session = opened()
    assert session.query(SITES, epsilon=1, combine=True).epsilon == 1
    other = "SELECT COUNT(*) AS n FROM visits WHERE cost > 3"
    assert session.query(other, epsilon=1, combine=True).epsilon == 1
    assert session.query("SELECT MEDIAN(cost) AS m FROM visits", epsilon=1, combine=True).epsilon == 1


@pytest.mark.parametrize("error", [ParameterError, QueryError, BudgetError])
def test_nothing_is_refused_once_the_part_of_a_combined_query_is_paid(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, error: type[HubbubError]
) -> None:
    """Scopes and allowances give back what such an error was reserved for: after a charge they would be spent twice."""
    session = opened()
    session.query(SITES, epsilon="0.1")

    def changed(*_: object, **__: object) -> None:
        raise error("HB206", "The policy was changed.", "Run the query again.")

    monkeypatch.setattr(reuse, "record", changed)
    with session.scope(epsilon=1) as scope:
        answer = scope.query(SITES, epsilon="0.12", combine=True)
        assert answer.rows
        assert scope.spent >= spent(session) - Fraction(1, 10) > 0


def test_a_combined_query_that_exceeds_the_budget_charges_nothing(opened: Opener) -> None:
    session = opened()
    session.query(SITES, epsilon="0.1")
    session.query("SELECT COUNT(*) AS n FROM visits WHERE cost > 3", epsilon="19.85")
    with pytest.raises(BudgetError):
        session.query(SITES, epsilon="0.12", combine=True)
    assert spent(session) == Fraction("19.95")


def test_queries_follow_from_the_marginals_of_a_released_table(opened: Opener, tmp_path: Path) -> None:
    session = opened()
    table = session.query("CALL tabulate(table => 'visits', columns => ['site', 'female'])", epsilon=2)
    # rows without a value of `female` are in no cell: the marginal over sites would lack them
    assert session.estimate(SITES, epsilon="0.1").free is None
    text = "SELECT site, COUNT(*) AS n FROM visits WHERE female GROUP BY site"
    derived = session.query(text, epsilon="0.1", raw=True)
    assert derived.epsilon == 0
    assert [each["charge"] for each in derived.receipt["derived"]["sources"]] == [
        table.receipt["ledger"][0]["sequence"]
    ]
    exact = {site: sum("abc"[i % 3] == site and i // 7 % 3 == 0 for i in range(600)) for site in "abc"}
    assert all(abs(float(n) - exact[str(site)]) < 40 for site, n in derived.rows)  # type: ignore[arg-type]
    for release in (table, derived):
        assert check_receipt(json.loads(json.dumps(release.document()))).sound
    store = SqliteStore(next(tmp_path.rglob("ledger.db")), read_only=True)
    with store.snapshot() as snapshot:
        assert not compare_with_ledger(json.loads(json.dumps(derived.document())), snapshot).problems
    store.close()
