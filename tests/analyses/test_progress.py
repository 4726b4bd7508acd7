"""What shows of a run while it runs, its steps with their shares and words, follows from the call alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.analyses.conftest import EXAMPLES, settle

from hubbub.core.secret import Secret
from hubbub.curator.question import Question
from hubbub.curator.session import Session, open_session
from hubbub.engines.base import Arrays

_HALVING = "CALL kmeans(table => 'people', columns => ['x', 'y'], k => 3, method => 'classic')"
#: Variants that take another way through a run: rounds that end early, pairs in several turns, more levels.
MORE = {
    "kmeans, classic by halving": _HALVING,
    "kmeans, classic": "CALL kmeans(table => 'people', columns => ['x'], k => 2, rounds => 2, method => 'classic')",
    "synthetic, in turns": "CALL synthetic(table => 'people', columns => ['sick', 'region'], pairs => 1, rounds => 2)",
    "frequent_itemsets, deep": "CALL frequent_itemsets(table => 'visits', item => 'item', size => 3, support => 0.9)",
    "decision_tree, deep": "CALL decision_tree(table => 'people', columns => ['region'], target => 'sick', depth => 3)",
}
CALLS = {**EXAMPLES, **MORE}
#: How often each is asked of each town: rounds end early by chance, and synthetic rows take seconds.
TRIES = {"kmeans, classic by halving": 8, "synthetic": 1, "synthetic_tables": 1, "synthetic, in turns": 1}


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Session]]:
    """Open the town, one with a row less in each table, one where all rows are alike, and one that is empty."""
    found = []
    for name in ("town", "neighbor", "alike", "empty"):
        folder = settle(tmp_path_factory.mktemp(name))
        for file in folder.glob("*.csv"):
            head, *rows = file.read_text().splitlines()
            kept = {"town": rows, "neighbor": rows[1:], "alike": rows[:1] * len(rows), "empty": []}[name]
            file.write_text("\n".join([head, *kept]) + "\n")
        text = (folder / "hubbub.yaml").read_text().replace("epsilon: 100,", "epsilon: 100000,")
        (folder / "hubbub.yaml").write_text(text)
        found.append(open_session(folder / "hubbub.yaml", analyst="ana"))
    yield found
    for session in found:
        session.close()


def steps(session: Session, call: str, key: str) -> list[tuple[float, str]]:
    shown: list[tuple[float, str]] = []
    session._curator.query(
        "ana",
        Question(call, epsilon="0.5" if "binomial" in call else "0.05"),
        key=key,
        progress=lambda done, what: shown.append((done, what)),
    )
    return shown


@pytest.mark.parametrize("name", sorted(CALLS))
def test_the_steps_that_show_follow_from_the_call_alone(towns: list[Session], name: str, tmp_path: Path) -> None:
    seen = [
        steps(session, CALLS[name].replace("'seen'", f"'seen{number}'"), f"{name} {number} {tmp_path}")
        for session in (towns if TRIES.get(name) != 1 else towns[::2])
        for number in range(TRIES.get(name, 2))
    ]
    assert [each for each in seen if each != seen[0]] == []
    shares = [share for share, _ in seen[0]]
    assert shares == sorted(shares)
    assert all(0 <= share <= 1 for share in shares)


def test_rounds_that_end_early_are_among_what_is_tried(towns: list[Session], monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the test above could not fail. False alarm: no number of rounds has half of the chance, so below 2⁻²³."""
    curator = towns[0]._curator
    real = curator.engine.run
    asked: list[int] = []

    def run(sql: str) -> Secret[Arrays]:
        asked[-1] += 1
        return real(sql)

    monkeypatch.setattr(curator.engine, "run", run)
    for number in range(24):
        asked.append(0)
        towns[0].query(_HALVING, epsilon="0.05", key=f"early {number}")
    assert len(set(asked)) > 1
