"""The pages of the screens: what the form sends is what the screen shows, without a script."""

import html
import re
from typing import Any

import pytest
from tests.fixtures.page_visits import Visitor, spend

from hubbub.attacks.screens import SCREENS


def text(answer: Any) -> str:
    assert answer.status_code == 200
    return html.unescape(re.sub(r"<[^>]+>", " ", answer.text))


def cells(page: str) -> list[list[str]]:
    """The table of the reading."""
    body = page.rpartition("<tbody>")[2].partition("</tbody>")[0]
    return [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in body.split("<tr>")[1:]]


def test_every_screen_has_a_page_with_its_sentences(visitor: Visitor) -> None:
    client = visitor("ana")
    for name, screen in SCREENS.items():
        if name in ("height", "smoking"):  # drawn anew; shown in tests/server/test_explain.py
            continue
        page = client.get(f"/explain/{name}")
        shown = html.unescape(re.sub(r"<[^>]+>", "", page.text))
        assert all(sentence.replace("`", "") in shown for sentence in screen.read({}).sentences), name
        assert 'role="img"' in page.text


def test_a_screen_links_to_those_that_it_names(visitor: Visitor) -> None:
    client = visitor("ana")
    assert '<a href="/explain/pad">hubbub explain pad</a>' in client.get("/explain/dalenius?n=5").text
    limits = client.get("/explain/limits").text
    assert all(f'<a href="/explain/{name}">{name}</a>' in limits for name in ("pad", "smoking", "composition"))


def test_a_parameter_moves_the_reading_and_a_wrong_one_is_refused(visitor: Visitor) -> None:
    client = visitor("ana")
    assert "46.3 percentage points" in text(client.get("/explain/beliefs?epsilon=1"))
    assert "9.99" not in text(client.get("/explain/beliefs?epsilon=1&other=9.99"))
    wrong = client.get("/explain/beliefs?epsilon=%3Cb%3E")
    assert wrong.status_code == 422
    assert "HB102" in wrong.text
    assert "<b>" not in wrong.text


@pytest.mark.row(10)
def test_the_tables_of_the_game_are_read(visitor: Visitor) -> None:
    """Weights 3 : 1 for 00 and 11, the others ruled out; a count at ε = ½ answers 2: odds (1/3)·e."""
    fields = "table=2x2&weight-00=3&weight-01=5&weight-10=5&weight-11=1&possible-00=on&possible-11=on&secret-11=on"
    page = visitor("ana").get(f"/explain/game?{fields}&mechanism=laplace&epsilon=0.5&answer=2")
    assert page.status_code == 200
    odds = 2.718281828 / 3
    assert cells(page.text)[-1][2:4] == ["25.0%", f"{100 * odds / (1 + odds):.1f}%"]
    assert re.search(r'id="possible-01"[^>]*checked', page.text) is None
    assert re.search(r'id="secret-11"[^>]*checked', page.text)


def test_a_table_of_another_size_gives_way_to_the_default(visitor: Visitor) -> None:
    page = visitor("ana").get("/explain/game?table=2x2&secret-11=on&possible-11=on&people=3")
    assert page.status_code == 200
    assert 'id="weight-101"' in page.text
    assert len(cells(page.text)) == 9


def test_a_game_without_a_secret_is_refused(visitor: Visitor) -> None:
    page = visitor("ana").get("/explain/game?table=2x2&possible-11=on&weight-11=1")
    assert page.status_code == 422
    assert "HB694" in page.text


@pytest.mark.row(10)
def test_the_game_against_everything_released_so_far(visitor: Visitor) -> None:
    """Half an ε was spent: a fair bit becomes at most e^½/(1 + e^½). Before, nothing can be learned."""
    client = visitor("ana")
    before = text(client.get("/explain/game?dataset=health&people=1"))
    assert "There is nothing to learn from." in before
    spend(client)
    after = client.get("/explain/game?dataset=health&people=1")
    assert "All queries so far on health." in text(after)
    assert cells(after.text)[-1][3] == "62.2%"
    assert client.get("/explain/game?dataset=secret").status_code == 422
