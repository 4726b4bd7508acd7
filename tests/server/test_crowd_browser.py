"""The studies of the crowd sanitizers in a real browser: choose, run, watch, take the plot away; by phone, too."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from hubbub.crowd.disclaimers import NOT_PRIVATE


def run(page: Page) -> None:
    page.get_by_role("button", name="Run study").click()
    page.wait_for_selector("#plot, [role=alert]", timeout=120_000)
    assert page.get_by_role("alert").count() == 0, page.get_by_role("alert").inner_text()


def test_a_reader_of_the_paper_runs_a_study_and_keeps_its_plot(
    desk: Callable[..., Any], served: Any, tmp_path: Path
) -> None:
    page = desk().sign_in("auditor")
    page.get_by_role("link", name="Explain and audit").click()
    page.get_by_role("link", name="Crowd sanitizers of 2005").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Crowd sanitizers")
    expect(page.get_by_text(NOT_PRIVATE)).to_be_visible()
    page.get_by_role("link", name=re.compile("^smoothness")).click()
    page.get_by_text("Settings", exact=True).click()
    page.get_by_label("Trials").fill("200")
    page.get_by_label("Dimensions").fill("4, 8")
    run(page)
    expect(page.get_by_text(NOT_PRIVATE)).to_be_visible()
    expect(page.locator("svg.chart circle")).to_have_count(4)
    expect(page.locator("table tbody tr")).to_have_count(2)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the plot").click()
    download.value.save_as(tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").read_text().startswith("<svg")
    page.get_by_role("link", name="Change and run again").click()
    expect(page.get_by_label("Trials")).to_have_value("200")
    assert served.spent() == {"health": "0"}


def test_a_study_under_way_can_be_cancelled(desk: Callable[..., Any]) -> None:
    page = desk().sign_in("ana")
    page.goto("/explain/crowd?study=subspace&set-databases=2000")
    page.get_by_role("button", name="Run study").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("status")).to_contain_text("was cancelled")


@pytest.mark.parametrize(
    "options",
    [
        {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
        {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark"},
        {"viewport": {"width": 390, "height": 800}, "java_script_enabled": False},
    ],
    ids=["wide", "narrow and dark", "without a script"],
)
def test_the_studies_fit_and_are_quiet(desk: Callable[..., Any], options: dict[str, Any]) -> None:
    page = desk(**options).sign_in("ana")
    width = options["viewport"]["width"]
    page.goto("/explain/crowd?study=smoothness&set-trials=200")
    boxes = [page.locator("main").bounding_box(), page.locator("header").bounding_box()]
    run(page)
    boxes += [each.bounding_box() for each in page.locator("main section").all()]
    assert all(box is not None and box["x"] + box["width"] <= width + 0.5 for box in boxes)
