"""A free query is answered from what is recorded or public, or refused; it never charges."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hubbub.answers.options import Options
from hubbub.curator.free import only_recorded
from hubbub.curator.question import Question
from hubbub.curator.session import Session
from hubbub.errors import ParameterError, RunError

Opener = Callable[..., Session]
COUNT = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
JOINED = "SELECT COUNT(*) AS n FROM visits JOIN labs ON visits.patient = labs.patient"
CALL = "CALL tabulate(table => 'visits', columns => ['region'])"
WORDS = "SELECT word, COUNT(*) AS n FROM visits GROUP BY word"


@pytest.mark.parametrize("sql", [COUNT, JOINED, CALL, WORDS])
def test_a_free_query_never_charges(opened: Opener, sql: str) -> None:
    with opened() as h:
        for key in (None, "named"):
            with pytest.raises(ParameterError, match="HB167"):
                h.query(sql, epsilon="0.5", key=key, free=True)
        assert h.releases() == ()
        paid = h.query(sql, epsilon="0.5")
        charges = h.releases()
        again = h.query(sql, epsilon="0.5", free=True)
        assert (again.document(), again.replayed) == (paid.document(), True)
        for options in (Options(epsilon="0.5", rows=1), Options(epsilon="0.4" if sql != COUNT else "0.6")):
            with pytest.raises(ParameterError, match=r"HB167|HB147"):
                h.query(sql, free=True, **options)
        with pytest.raises(ParameterError, match="HB167"):
            h.query(sql, free=True, epsilon="0.5", key="named")
        assert h.releases() == charges


def test_within_finds_what_it_paid_for(opened: Opener) -> None:
    with opened() as h:
        paid = h.query(COUNT, within=50)
        assert h.query(COUNT, within=50, free=True).document() == paid.document()
        assert h.query(COUNT, epsilon=paid.epsilon, noise="gaussian", free=True).document() == paid.document()


def test_public_tables_and_earlier_releases_are_free(opened: Opener) -> None:
    with opened() as h:
        assert len(h.query("SELECT region FROM regions", free=True).rows) == 3
        number = h.query(COUNT, epsilon="0.5").receipt["ledger"][0]["sequence"]
        assert len(h.query(f"SELECT n FROM release({number})", free=True).rows) == 3


def test_other_data_is_not_free(opened: Opener, clinic: Path) -> None:
    with opened() as h:
        h.query(JOINED, epsilon="0.5")
        with (clinic / "labs.csv").open("a") as file:
            file.write("7,3\n")
        with pytest.raises(ParameterError, match="HB167"):
            h.query(JOINED, epsilon="0.5", free=True)


def test_another_analysts_answer_is_not_free(opened: Opener) -> None:
    with opened(analyst="ana") as h:
        h.query(COUNT, epsilon="0.5")
    with opened(analyst="ben") as other, pytest.raises(ParameterError, match="HB167"):
        other.query(COUNT, epsilon="0.5", free=True)


def test_a_charge_without_a_release_is_not_free(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened() as h:
        with monkeypatch.context() as broken:
            broken.setattr(h._curator, "_run", lambda *_: 1 / 0)
            with pytest.raises(RunError):
                h.query(COUNT, epsilon="0.5")
        with pytest.raises(ParameterError, match="HB167"):
            h.query(COUNT, epsilon="0.5", free=True)


def test_a_release_that_must_not_show_yet_is_not_free(opened: Opener) -> None:
    with opened(analyst="ana") as h:
        curator, names = h._curator, list[str]()

        def remember(name: str) -> str:
            names.append(name)
            return name

        curator.query("ana", Question(COUNT, epsilon="0.5"), claim=remember)
        hidden = frozenset({("ana", names[0].rpartition(" ")[0])})
        assert only_recorded(curator.ledger, "ana")(names[0]) == names[0]
        assert only_recorded(curator.ledger, "ana", lambda: frozenset({("ben", "x")}))(names[0]) == names[0]
        with pytest.raises(ParameterError, match="HB167"):
            only_recorded(curator.ledger, "ana", lambda: hidden)(names[0])


def test_free_queries_at_once_charge_nothing(opened: Opener) -> None:
    with opened() as h, ThreadPoolExecutor(8) as pool:

        def ask(number: int) -> str:
            try:
                h.query(COUNT, epsilon="0.5", key=f"k{number % 3}", free=True)
            except ParameterError as error:
                return error.code
            return ""

        assert set(pool.map(ask, range(24))) == {"HB167"}
        assert h.releases() == ()
