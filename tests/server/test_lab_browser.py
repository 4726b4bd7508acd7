"""The Attack lab in a real browser: choose, run, watch, take the report away; on a table of one's own, by phone."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

#: People without a name, each alone with their zip code and year of birth.
ROWS = "zip,born,sex,sick\n" + "".join(
    f"{1000 + n % 37},{1930 + n % 61},{'mf'[n % 2]},{n * 7 % 3 // 2}\n" for n in range(400)
)


def run(page: Page) -> None:
    page.get_by_role("button", name="Run attack").click()
    seen(page)


def seen(page: Page) -> None:
    page.wait_for_selector("#plot, [role=alert]", timeout=120_000)
    assert page.get_by_role("alert").count() == 0, page.get_by_role("alert").inner_text()
    expect(page.get_by_role("heading", name="Success rate by ε")).to_be_visible()


def test_a_privacy_officer_watches_an_attack_and_files_the_report(
    desk: Callable[..., Any], served: Any, tmp_path: Path
) -> None:
    page = desk().sign_in("auditor")
    page.get_by_role("link", name="Explain and audit").click()
    page.get_by_role("link", name="Open the attack lab").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Attack lab")
    page.get_by_role("link", name=re.compile("^differencing")).click()
    page.get_by_label("Values of ε").fill("0.1, 1, 5")
    page.get_by_text("Attack settings").click()
    page.get_by_label("Trials").fill("400")
    page.get_by_role("button", name="Run attack").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    seen(page)
    plot = page.locator("svg.attack")
    assert plot.locator("line.ceiling").count() > 40
    assert plot.locator("line.chance").count() == 2  # in the drawing and in its legend
    marks = plot.locator("g[class^=tone]").count()
    rows = page.locator("table tbody tr")
    expect(rows).to_have_count(marks)
    expect(rows.filter(has_text="succeeds: better than chance").first).to_be_visible()
    expect(page.get_by_text("exceeded the privacy guarantee")).to_have_count(0)
    page.get_by_label("Protection").select_option(label="With a privacy guarantee")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("succeeds: better than chance")).to_have_count(0)
    page.get_by_label("Protection").select_option(label="Only: hubbub")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("table tbody tr")).to_have_count(3)
    for form, start in (("HTML", b"<!doctype html>"), ("PDF", b"%PDF-")):
        with page.expect_download() as download:
            page.get_by_role("link", name=f"{form} report").click()
        download.value.save_as(tmp_path / form)
        assert (tmp_path / form).read_bytes().startswith(start)
        assert download.value.suggested_filename == f"hubbub-differencing.{form.lower()}"
    assert "trials = 400" in (tmp_path / "HTML").read_text()
    page.get_by_role("link", name="Change and run again").click()
    expect(page.get_by_label("Values of ε")).to_have_value("0.1, 1, 5")
    expect(page.get_by_label("Trials")).to_have_value("400")
    expect(page.get_by_role("link", name=re.compile("differencing, ε = 0.1, 1, 5"))).to_be_visible()
    assert served.spent() == {"health": "0"}


def test_a_report_opens_by_itself_without_a_network(desk: Callable[..., Any], tmp_path: Path) -> None:
    opened = desk()
    page = opened.sign_in("owner")
    page.goto("/explain/lab?attack=differencing&epsilons=1&set-trials=200")
    run(page)
    with page.expect_download() as download:
        page.get_by_role("link", name="HTML report").click()
    report = tmp_path / "report.html"
    download.value.save_as(report)
    opened.context.set_offline(offline=True)
    alone = opened.tab()
    asked: list[str] = []
    alone.on("request", lambda request: asked.append(request.url))
    alone.goto(report.as_uri())
    expect(alone.get_by_role("heading", name="Figures", exact=True)).to_be_visible()
    expect(alone.locator("svg.attack")).to_be_visible()
    assert asked == [report.as_uri()]


def test_a_table_of_ones_own_is_sent_attacked_and_forgotten(desk: Callable[..., Any], tmp_path: Path) -> None:
    table = tmp_path / "patients.csv"
    table.write_text(ROWS)
    page = desk().sign_in("ana")
    page.goto("/explain/lab?attack=differencing&epsilons=1&set-trials=200&set-column=sick")
    expect(page.get_by_label("CSV file")).to_be_hidden()
    page.get_by_label("Table", exact=True).select_option("upload")
    page.get_by_role("button", name="Run attack").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Attack lab")  # the browser wants a file first
    page.get_by_label("CSV file").set_input_files(table)
    run(page)
    expect(page.locator("main")).to_contain_text(f"uploaded, {len(ROWS):,} bytes, SHA-256")
    expect(page.locator("main")).not_to_contain_text("patients.csv")


def test_hostile_tables_are_refused_in_words_and_run_nothing(desk: Callable[..., Any], tmp_path: Path) -> None:
    opened = desk()
    page = opened.sign_in("ana")
    opened.context.on("dialog", lambda dialog: opened.complaints.append(dialog.message))
    cases = {
        "binary.csv": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" * 100,
        "html.csv": b"<script>alert(1)</script>,<script>alert(1)</script>\n1,2\n",
        "ragged.csv": b"a,b\n1\n1,2,3\n",
    }
    for name, content in cases.items():
        (tmp_path / name).write_bytes(content)
        page.goto("/explain/lab?attack=differencing&table=upload")
        page.get_by_label("CSV file").set_input_files(tmp_path / name)
        page.get_by_role("button", name="Run attack").click()
        expect(page.get_by_role("alert")).to_contain_text("HB645", timeout=60_000)
        assert page.locator("main script, main img").count() == 0


def test_an_attack_under_way_can_be_cancelled(desk: Callable[..., Any]) -> None:
    page = desk().sign_in("ana")
    page.goto("/explain/lab?attack=reconstruction&set-people=4000")
    page.get_by_role("button", name="Run attack").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("status")).to_contain_text("was cancelled")
    page.goto("/explain/lab")
    expect(page.get_by_text("cancelled", exact=True)).to_be_visible()


@pytest.mark.parametrize(
    "options",
    [
        {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
        {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark"},
        {"viewport": {"width": 390, "height": 800}, "java_script_enabled": False},
    ],
    ids=["wide", "narrow and dark", "without a script"],
)
def test_the_lab_fits_and_is_quiet(desk: Callable[..., Any], options: dict[str, Any]) -> None:
    page = desk(**options).sign_in("ana")
    width = options["viewport"]["width"]
    page.goto("/explain/lab?attack=differencing&epsilons=0.1,1&set-trials=200")
    boxes = [page.locator("main").bounding_box(), page.locator("header").bounding_box()]
    run(page)
    boxes += [each.bounding_box() for each in page.locator("main section").all()]
    assert all(box is not None and box["x"] + box["width"] <= width + 0.5 for box in boxes)
    expect(page.locator("table tbody tr").first).to_be_visible()


def test_the_lab_is_run_by_the_keyboard(desk: Callable[..., Any]) -> None:
    page = desk().sign_in("ana")
    page.goto("/explain/lab?attack=differencing&set-trials=200")
    page.get_by_label("Values of ε").fill("1")
    page.keyboard.press("Enter")
    seen(page)
    expect(page.locator("svg.attack")).to_have_attribute("role", "img")
    expect(page.locator("svg.attack")).to_have_attribute("aria-label", re.compile("hubbub, ε = 1: "))
