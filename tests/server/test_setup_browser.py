"""The set-up page in a real browser, from the link to the tokens, on a narrow and a wide window."""

import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, expect
from tests.fixtures.axe import violations

from hubbub.config import load
from hubbub.demo import HERE
from hubbub.server.setup.app import create_app
from hubbub.server.setup.draft import SetupDraft
from hubbub.server.setup.pages import SetupPages


@pytest.fixture
def setup(tmp_path: Path) -> SetupPages:
    shutil.copyfile(HERE / "health.csv", tmp_path / "health.csv")

    async def finished() -> None:
        """Go on, so that the test can look at the last page."""

    return SetupPages(SetupDraft(tmp_path / "hubbub.yaml"), "http://127.0.0.1:8321", finished)


@pytest.fixture
def url(setup: SetupPages) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(create_app(setup), log_config=None, lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=[[listening]])
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


def go_on(page: Page, button: str, step: str) -> None:
    """Press a button, and check that the next page is no wider than the window, and violates no rule."""
    page.get_by_role("button", name=button).click()
    page.wait_for_url(f"**/setup/{step}")
    page.wait_for_load_state()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert violations(page) == []


@pytest.mark.parametrize("width", [320, 1280])
def test_an_owner_sets_hubbub_up(browser: Browser, url: str, setup: SetupPages, tmp_path: Path, width: int) -> None:
    theme: Literal["dark", "light"] = "dark" if width == 320 else "light"
    context = browser.new_context(base_url=url, viewport={"width": width, "height": 800}, color_scheme=theme)
    complaints: list[str] = []
    page = context.new_page()
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type != "log" else None)
    page.goto(f"/setup?token={setup.access.link_token}")
    go_on(page, "Begin", "data")
    page.get_by_label("health.csv").check()
    go_on(page, "Use these files", "people")
    page.get_by_label("A column says it").check()
    page.get_by_label("Column", exact=True).select_option("person")
    go_on(page, "Continue", "columns")
    page.get_by_label("What analysts may do with age").select_option("bounds")
    page.get_by_label("Bounds or values of age").fill("0, 110")
    go_on(page, "Continue", "budget")
    words = page.locator("#sentence-0")
    expect(words).to_contain_text("73.2%")
    slider = page.get_by_role("slider")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.get_by_label("Total privacy budget")).to_have_value("3")
    expect(words).to_contain_text("95.3% sure: odds of 1 to 1 become at most 20.1 to 1")
    go_on(page, "Continue", "analyst")
    go_on(page, "Continue", "review")
    page.get_by_role("link", name="Columns").click()
    expect(page.get_by_label("Bounds or values of age")).to_have_value("0, 110")
    page.get_by_role("link", name="Review").click()
    assert not (tmp_path / "hubbub.yaml").exists()
    page.get_by_role("button", name="Write hubbub.yaml").click()
    expect(page.locator("#owner-token")).to_contain_text("hub_")
    config = load(tmp_path / "hubbub.yaml")
    unit = config.datasets["health"].table.unit
    assert unit is not None
    assert unit.column == "person"
    context.close()
    assert complaints == []
