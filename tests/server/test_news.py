"""What the home page says has changed since the last visit, against what the test itself changed."""

import html
import itertools
import re
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from tests.fixtures.page_visits import token
from tests.server.conftest import World, in_process

from hubbub.accounting.filters import Budget
from hubbub.server.accounts import Principal
from hubbub.server.news_service import PAUSE, SinceLastVisit

OWNER = Principal("owner", "owner", None, 0)


_TIMES, _NAMES = itertools.count(1), itertools.count(1)


class Hours:
    """A clock that a test moves, at a time of the day of its own; the ledger's clock is not moved."""

    def __init__(self) -> None:
        self.later, self._start = 0, int(time.time()) + next(_TIMES) * 4 * 3600

    def __call__(self) -> int:
        return self._start + self.later


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with in_process(tmp_path_factory.mktemp("news")) as made:
        yield made


@pytest.fixture
def hours(world: World, monkeypatch: pytest.MonkeyPatch) -> Hours:
    clock = Hours()
    world.service.state._database.write("DELETE FROM visits")  # those of other tests
    monkeypatch.setattr(world.service.accounts, "clock", clock)
    return clock


def charged(world: World) -> int:
    """Let ana pay for new noise, and return the number of the charge."""
    answer = world.ask(epsilon="0.1", key=f"news {next(_NAMES)}")
    return int(answer.json()["receipt"]["ledger"][0]["sequence"])


def budget(epsilon: int) -> Budget:
    return Budget(Fraction(epsilon), Fraction(0))


def changes(world: World, who: str = "ana") -> SinceLastVisit:
    return world.service.news.changes(Principal(who, "analyst", None, 0))


def texts(world: World, who: str = "ana") -> list[str]:
    return [each.text for each in changes(world, who).news]


def test_the_first_visit_has_no_news_and_the_next_one_has_what_changed(world: World, hours: Hours) -> None:
    assert changes(world) == SinceLastVisit(None, ())
    first = hours()
    administration = world.service.administration
    administration.add_analyst(OWNER, "ana", {"health": budget(12), "wards": budget(1)})
    asked = [administration.request(Principal("ana", "analyst", None, 0), "health", e, "more") for e in ("1", "2")]
    hours.later = 10
    administration.grant(OWNER, asked[0].id, "as agreed")
    hours.later += PAUSE
    found = changes(world)
    assert found.since == first
    assert [each.text for each in found.news] == [
        "Your budget on health is now ε = 13; it was 10.",
        "You can query wards now.",
        "Your request for ε = 1 on health was granted. Note: as agreed",
    ]
    assert texts(world) == [each.text for each in found.news], "a reload is the same visit"
    hours.later += 2 * PAUSE
    assert changes(world).news == ()


def test_answers_that_were_recorded_meanwhile_are_counted(world: World) -> None:
    start = int(time.time())
    time.sleep(1.1)  # the ledger's time is the real one, and others' answers may be of this second
    charged(world), charged(world)
    (found,) = world.service.news._answers(Principal("ana", "analyst", None, 0), start + 1)
    assert found.text == "2 answers were recorded for you on health."


def test_others_changes_are_no_news(world: World, hours: Hours) -> None:
    assert changes(world, "eve").since is None
    hours.later = PAUSE + 5
    world.service.administration.add_analyst(OWNER, "ben", {"health": budget(2)})
    number = charged(world)
    world.service.publications.publish(OWNER, number, "Visits")
    assert texts(world, "eve") == []


def test_a_public_page_of_an_own_release_is_news_once(world: World, hours: Hours) -> None:
    changes(world)
    hours.later = PAUSE + 5
    number = charged(world)
    page = world.service.publications.publish(OWNER, number, "Visits of all").page
    found = changes(world)
    assert [(each.text, each.address) for each in found.news] == [
        (f"Your release {number} has a public page: Visits of all", f"/published/{page}")
    ]
    world.service.publications.withdraw(OWNER, page)
    assert texts(world) == [f"The public page of your release {number} was withdrawn."]


def test_the_home_page_shows_it(world: World, hours: Hours, tmp_path: Path) -> None:
    client = world.client(None, follow_redirects=True)
    client.post("/sign-in", data={"csrf": token(client.get("/sign-in")), "token": world.tokens["ben"], "next": "/"})
    assert "Since your last visit" not in client.get("/").text
    hours.later = PAUSE + 5
    assert "Nothing has changed" in client.get("/").text
    world.service.administration.add_analyst(OWNER, "ben", {"health": budget(3)})
    page = html.unescape(re.sub(r"<[^>]+>", " ", client.get("/").text))
    assert "Since your last visit" in page
    assert "Your budget on health is now ε = 3" in page
    owner = world.client(None, follow_redirects=True)
    owner.post("/sign-in", data={"csrf": token(owner.get("/sign-in")), "token": world.tokens["owner"], "next": "/"})
    assert "last visit" not in owner.get("/").text
