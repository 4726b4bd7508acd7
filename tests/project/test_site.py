"""The documentation site builds without a warning, loads nothing from elsewhere, and can be searched."""

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright
from tests.server.conftest import ARGUMENTS

ROOT = Path(__file__).parents[2]


def build(source: Path, target: Path) -> "subprocess.CompletedProcess[str]":
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        str(source),
        "--site-dir",
        str(target),
    ]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=env, cwd=ROOT)


class Loads(HTMLParser):
    """What a browser loads to show a page; links that somebody has to click do not count."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "img", "iframe", "source"):
            self.addresses.append(given.get("src") or "")
        if tag == "link" and given.get("rel") in ("stylesheet", "preload", "preconnect", "icon"):
            self.addresses.append(given.get("href") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = build(ROOT / "mkdocs.yml", folder)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return folder


@pytest.mark.slow
def test_the_site_builds_without_warnings_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    for page in pages:
        loads = Loads()
        loads.feed(page.read_text(encoding="utf-8"))
        assert loads.addresses
        assert not [each for each in loads.addresses if re.match(r"(https?:)?//", each)], page
    names = {page.relative_to(site).as_posix() for page in pages}
    assert {"index.html", "start.html", "reference/http.html", "reference/configuration.html", "errors.html"} <= names
    assert {f"notebooks/{path.stem}.html" for path in (ROOT / "docs" / "notebooks").glob("*.ipynb")} <= names
    search = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    assert "SQL cookbook" in search


@pytest.mark.browser
def test_pages_that_are_opened_as_files_can_be_searched(site: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(ARGUMENTS))
        page = browser.new_page()
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto((site / "start.html").as_uri())
        page.keyboard.press("s")
        page.keyboard.type("cookbook", delay=20)
        expect(page.locator(".md-search-result__link").first).to_be_visible(timeout=20_000)
        assert "SQL cookbook" in page.inner_text(".md-search-result")
        browser.close()
    assert problems == []


@pytest.mark.slow
def test_a_broken_link_stops_the_build(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("[gone](gone.md) [no such part](#nowhere)", encoding="utf-8")
    rules = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    validation = rules[rules.index("validation:") : rules.index("nav:\n")]
    (tmp_path / "mkdocs.yml").write_text(f"site_name: x\nstrict: true\n{validation}", encoding="utf-8")
    built = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert built.returncode != 0
    assert "gone.md" in built.stderr
    assert "#nowhere" in built.stderr
