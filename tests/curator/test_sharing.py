"""Shared answers: what one analyst bought answers the queries of others, where the data owner lets them see it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.config import load
from hubbub.config.summary import warnings
from hubbub.curator import reuse
from hubbub.curator.session import Session, open_session
from hubbub.errors import ConfigError, HubbubError

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: row
    share: {share}
    columns:
      site: {{values: [a, b], required: true}}
      word: {{}}
      age: {{type: integer, bounds: [0, 100]}}
    budget: {{epsilon: 6, delta: 1e-6}}
analysts:
  ana: {{visits: {{epsilon: 5, delta: 1e-6}}}}
  ben: {{visits: {{epsilon: 5, delta: 1e-6}}}}
  eve: {{visits: {{epsilon: 5, delta: 1e-6}}}}
groups:
  lab: {{members: [ana, ben], visits: {{epsilon: 6, delta: 1e-6}}}}
"""
SITES = "SELECT site, COUNT(*) AS n FROM visits GROUP BY site"
TOTAL = "SELECT COUNT(*) AS n FROM visits"
MEDIAN = "SELECT MEDIAN(age) AS m FROM visits"

Opener = Callable[[str], Session]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f"{'ab'[i % 2]},w{i % 3},{i % 90}" for i in range(300)]
    (tmp_path / "visits.csv").write_text("\n".join(["site,word,age", *rows]) + "\n")
    return tmp_path


@pytest.fixture
def opened(folder: Path, request: pytest.FixtureRequest) -> Iterator[Opener]:
    (folder / "hubbub.yaml").write_text(YAML.format(share=request.param))
    with ExitStack() as stack:
        yield lambda analyst: stack.enter_context(open_session(folder / "hubbub.yaml", analyst=analyst))


@pytest.mark.parametrize("opened", ["everyone"], indirect=True)
def test_what_one_analyst_bought_is_free_for_all(opened: Opener) -> None:
    ana, eve = opened("ana"), opened("eve")
    bought = ana.query(SITES, epsilon=1)
    derived = eve.query(TOTAL, epsilon="0.1")
    assert derived.epsilon == 0
    assert derived.receipt["derived"]["sources"][0]["charge"] == bought.receipt["ledger"][0]["sequence"]
    assert eve.query(SITES, epsilon=1).rows == bought.rows
    assert all(charge.epsilon == 0 for charge in eve.releases())


@pytest.mark.parametrize("opened", ["everyone"], indirect=True)
def test_an_exact_repeat_by_another_analyst_is_free(opened: Opener) -> None:
    """Also of what is no source: selected values and groups."""
    ana, eve = opened("ana"), opened("eve")
    for text in (MEDIAN, "SELECT word, COUNT(*) AS n FROM visits GROUP BY word"):
        bought = ana.query(text, epsilon=1)
        again = eve.query(text, epsilon=1)
        assert again.replayed
        assert again.rows == bought.rows
    assert eve.releases() == ()


@pytest.mark.parametrize("opened", ["everyone"], indirect=True)
def test_the_caps_of_a_dataset_count_a_shared_release_once(opened: Opener) -> None:
    """Three analysts see what one of them bought; the dataset has one charge, and no cap of the others has any."""
    sessions = [opened(name) for name in ("ana", "ben", "eve")]
    for session in sessions:
        session.query(SITES, epsilon=4)
    spent = [sum((charge.epsilon for charge in session.releases()), Fraction(0)) for session in sessions]
    assert spent == [4, 0, 0]


@pytest.mark.parametrize("opened", ["group"], indirect=True)
def test_a_group_shares_among_its_members_alone(opened: Opener) -> None:
    ana, ben, eve = (opened(name) for name in ("ana", "ben", "eve"))
    ana.query(SITES, epsilon=1)
    assert ben.query(TOTAL, epsilon="0.1").epsilon == 0
    assert eve.estimate(TOTAL, epsilon="0.1").free is None
    assert eve.query(TOTAL, epsilon="0.1").epsilon == Fraction(1, 10)
    assert eve.query(SITES, epsilon=1).epsilon == 1


@pytest.mark.parametrize("opened", ["none"], indirect=True)
def test_by_default_nothing_is_shared(opened: Opener) -> None:
    ana, ben = opened("ana"), opened("ben")
    ana.query(SITES, epsilon=1)
    ana.query(MEDIAN, epsilon=1)
    assert ben.query(SITES, epsilon=1).epsilon == 1
    assert not ben.query(MEDIAN, epsilon=1).replayed


@pytest.mark.parametrize("opened", ["none"], indirect=True)
def test_a_planted_share_is_seen(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted error: everybody's releases are looked at. The test above would see it."""
    monkeypatch.setattr(reuse, "sharing", lambda *_: ("ana",))
    ana, ben = opened("ana"), opened("ben")
    ana.query(SITES, epsilon=1)
    assert ben.query(TOTAL, epsilon="0.1").epsilon == 0


def test_the_owner_is_told_what_sharing_means(folder: Path) -> None:
    (folder / "hubbub.yaml").write_text(YAML.format(share="everyone"))
    said = warnings(load(folder / "hubbub.yaml"))
    assert any("what they learn is limited by the caps of all of them" in each for each in said)
    (folder / "hubbub.yaml").write_text(YAML.format(share="some"))
    with pytest.raises(HubbubError) as caught:
        load(folder / "hubbub.yaml")
    assert isinstance(caught.value, ConfigError)
    assert "share" in str(caught.value)
