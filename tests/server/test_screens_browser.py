"""The screens in a real browser: one walk through all of them, with sliders, on a wide and on a narrow page."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from hubbub.attacks.screens import SCREENS

#: Screens that take a while; they are like the others.
SLOW = ("smoking", "height", "separation", "local")
#: Screens whose slider is moved: one of each kind of figure.
MOVED = ("game", "pad", "composition", "simulator", "beliefs", "lemma")


def fits(page: Page, width: int) -> bool:
    """Whether nothing of the page, the texts of figures included, ends beyond its width."""
    ends = page.evaluate(
        "[...document.querySelectorAll('main section, header, main h1, svg.screen-figure text')]"
        ".map((each) => each.getBoundingClientRect().right)"
    )
    return len(ends) > 3 and max(ends) <= width + 0.5


def test_a_sceptic_walks_through_all_screens(desk: Callable[..., Any], served: Any) -> None:
    """Every screen fits on a desk and on a phone, its first slider moves its reading, and nothing is charged."""
    page = desk().sign_in("ana")
    page.goto("/explain")
    expect(page.get_by_role("link", name=re.compile("What can never be promised"))).to_be_visible()
    for name, screen in SCREENS.items():
        if name in SLOW:
            continue
        page.set_viewport_size({"width": 1280, "height": 800})
        page.goto(f"/explain/{name}")
        expect(page.get_by_role("heading", level=1)).to_have_text(screen.title)
        assert fits(page, 1280), name
        page.set_viewport_size({"width": 390, "height": 800})
        assert fits(page, 390), name
        slider = page.locator("form[data-live] input[type=range]:visible").first
        if name in MOVED:
            before = page.locator("#reading").inner_text()
            slider.press("ArrowRight")
            expect(page.locator("#reading")).not_to_have_text(before, use_inner_text=True)
            expect(page.get_by_role("alert")).to_have_count(0)
    assert served.spent() == {"health": "0"}


@pytest.mark.row(10)
def test_the_game_follows_its_tables_and_works_without_a_script(desk: Callable[..., Any]) -> None:
    """Ruling out 00 and 01 settles Alice's bit: 100 % before and after. A third person needs another table."""
    page = desk().sign_in("ana")
    page.goto("/explain/game")
    secret = page.locator("#reading tbody tr").last.locator("td")
    expect(secret.nth(3)).to_have_text("73.1%")  # e/(1 + e)
    page.get_by_label("00 is possible").uncheck()
    page.get_by_label("01 is possible").uncheck()
    expect(secret.nth(2)).to_have_text("100%")
    assert "possible-10=on" in page.url
    page.get_by_label("People", exact=True).select_option("3")
    expect(page.get_by_label("101 is possible")).to_be_checked()
    plain = desk(java_script_enabled=False).sign_in("ana")
    plain.goto("/explain/game")
    assert plain.locator("input[type=range]:visible").count() == 0
    plain.get_by_label("Mechanism").select_option("laplace")
    plain.get_by_role("textbox", name="Answer").fill("2")
    plain.get_by_role("button", name="Show").click()
    expect(plain.locator("#reading")).to_contain_text("The answer is 2.")
