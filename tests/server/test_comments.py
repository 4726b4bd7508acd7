"""Comments on releases: who reads, writes and removes them."""

from collections.abc import Iterator

import pytest
from tests.fixtures.page_visits import token
from tests.server.conftest import World, in_process

from hubbub.errors import HubbubError
from hubbub.server.accounts import Principal
from hubbub.server.comment_service import MAX_TEXT
from hubbub.server.comments import MAX_COMMENTS

ANA, BEN = (Principal(name, "analyst", None, 0) for name in ("ana", "ben"))
OWNER, AUDITOR, STEWARD = (Principal(name, name, None, 0) for name in ("owner", "auditor", "steward"))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with in_process(tmp_path_factory.mktemp("comments")) as made:
        yield made


@pytest.fixture
def release(world: World) -> int:
    answer = world.ask(sql="SELECT COUNT(*) AS n FROM health", epsilon=f"0.0{world.keys + 1:03}")
    return int(answer.json()["receipt"]["ledger"][0]["sequence"])


def test_whoever_may_read_a_release_comments_on_it(world: World, release: int) -> None:
    comments = world.service.comments
    for who, text in ((ANA, "First"), (OWNER, "Second"), (AUDITOR, "Third")):
        comments.add(who, release, f" {text}\r\nline ")
    for who in (ANA, OWNER, AUDITOR):
        found = [(each.author, each.role, each.text) for each in comments.list(who, release)]
        assert found == [
            ("ana", "analyst", "First\nline"),
            ("owner", "owner", "Second\nline"),
            ("auditor", "auditor", "Third\nline"),
        ]


def test_for_others_the_comments_are_like_the_release(world: World, release: int) -> None:
    comments = world.service.comments
    mine = comments.add(ANA, release, "Mine")
    for call in (lambda number: comments.list(BEN, number), lambda number: comments.add(BEN, number, "x")):
        codes = []
        for number in (release, 10**6):
            with pytest.raises(HubbubError) as refused:
                call(number)
            codes.append(refused.value.code)
        assert codes[0] == codes[1]
    with pytest.raises(HubbubError) as steward:
        comments.list(STEWARD, release)
    assert steward.value.code == "HB710"
    for who in (BEN, AUDITOR, Principal("ana", "auditor", None, 0)):
        with pytest.raises(HubbubError) as refused:
            comments.remove(who, mine.id)
        assert refused.value.code == "HB164"
    assert [each.text for each in comments.list(ANA, release)] == ["Mine"]
    assert comments.remove(ANA, mine.id) == release
    assert comments.list(ANA, release) == []
    assert comments.remove(OWNER, comments.add(ANA, release, "x").id) == release


@pytest.mark.parametrize("text", ["", "  \n", "x" * (MAX_TEXT + 1), "a\0b"])
def test_texts_have_bounds(world: World, release: int, text: str) -> None:
    with pytest.raises(HubbubError, match="HB389"):
        world.service.comments.add(ANA, release, text)


def test_a_release_takes_so_many_comments_and_no_more(world: World, release: int) -> None:
    database, comments = world.service.state._database, world.service.comments
    for number in range(MAX_COMMENTS - 1):
        database.write(
            "INSERT INTO comments (release, author, role, text, at) VALUES (?, 'ana', 'analyst', ?, 0)",
            (release, str(number)),
        )
    assert comments.add(ANA, release, "the last").text == "the last"
    with pytest.raises(HubbubError, match="HB390"):
        comments.add(ANA, release, "one more")


def test_the_page_shows_comments_as_they_were_typed(world: World, release: int) -> None:
    client = world.client(None, follow_redirects=True)
    client.post("/sign-in", data={"csrf": token(client.get("/sign-in")), "token": world.tokens["ana"], "next": "/"})
    page = client.get(f"/releases/{release}")
    assert "No comments yet" in page.text
    sent = client.post(f"/releases/{release}/comments", data={"csrf": token(page), "text": "<b>Fewer</b> than thought"})
    assert "Your comment was added" in sent.text
    assert "&lt;b&gt;Fewer&lt;/b&gt; than thought" in sent.text
    (comment,) = world.service.comments.list(ANA, release)
    gone = client.post(f"/releases/{release}/uncomment", data={"csrf": token(sent), "comment": str(comment.id)})
    assert "The comment was removed" in gone.text
    assert "Fewer" not in gone.text
