"""The pictures of docs/pages.md: the pages of a server over the demo's data, in a real browser (`make screenshots`).

The noise is drawn anew each time, so the pictures differ a little from run to run.
"""

import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from hubbub.demo import HERE, lay_out
from hubbub.server.app import create_app, uvicorn_config
from hubbub.server.service import Service
from hubbub.server.settings import Settings
from hubbub.server.setup.app import create_app as create_setup
from hubbub.server.setup.draft import SetupDraft
from hubbub.server.setup.pages import SetupPages

PLACE = Path(__file__).parents[2] / "docs" / "pages"
WIDTHS = (1280, 390)
#: Bytes; more would weigh on everybody who clones.
MOST = 150_000
#: Pixels, by width: a longer page is cut off.
TALLEST = {1280: 2400, 390: 6000}
#: Numbers of colors to try; text stays readable with the last one.
PALETTES = (96, 64, 48, 32, 24, 16)

CAPS = "analysts:\n  ana: {health: {epsilon: 2}}\n  ben: {health: {epsilon: 1}}\n"
QUESTIONS = (
    ("SELECT COUNT(DISTINCT person) AS people FROM health WHERE visits > 10", "0.1", ""),
    (
        "SELECT coinsurance, COUNT(*) AS person_years, AVG(visits) AS visits FROM health GROUP BY coinsurance",
        "0.5",
        "1",
    ),
)
LAST = "SELECT health, COUNT(DISTINCT person) AS people FROM health WHERE age >= 40 GROUP BY health"


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, Service]]:
    """Serve the demo's data, with two analysts, behind a free port."""
    lay_out(folder)
    config = folder / "hubbub.yaml"
    config.write_text(config.read_text().partition("analysts:")[0] + CAPS)
    service = Service(config, Settings(secret=b"s" * 32, port=0, quantum=0.0))
    server = uvicorn.Server(uvicorn_config(create_app(service), service))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=[[listening]])
        thread.start()
        while not server.started and thread.is_alive():
            thread.join(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", service
        finally:
            server.should_exit = True
            thread.join()


def entered(browser: Browser, url: str, token: str, width: int) -> Page:
    page = browser.new_context(base_url=url, viewport={"width": width, "height": 800}).new_page()
    page.goto("/sign-in")
    page.get_by_label("Your token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{url}/")
    return page


def ask(page: Page, sql: str, epsilon: str, groups: str, button: str) -> None:
    page.goto("/ask")
    page.get_by_label("SQL query").fill(sql)
    page.get_by_label("Privacy cost (ε)").fill(epsilon)
    if groups:
        page.get_by_text("Contribution limits per person").click()
        page.get_by_label("Maximum groups").fill(groups)
    page.get_by_role("button", name=button).click()
    page.wait_for_selector("#answer, #estimated")


def set_up(browser: Browser, width: int) -> None:
    """Take a picture of the set-up page, at the budget."""
    with TemporaryDirectory() as folder:
        shutil.copyfile(HERE / "health.csv", Path(folder) / "health.csv")
        setup = SetupPages(SetupDraft(Path(folder) / "hubbub.yaml"), "", _go_on)
        server = uvicorn.Server(uvicorn.Config(create_setup(setup), log_config=None, lifespan="off"))
        with socket.create_server(("127.0.0.1", 0)) as listening:
            thread = threading.Thread(target=server.run, args=[[listening]])
            thread.start()
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            page = browser.new_context(base_url=url, viewport={"width": width, "height": 800}).new_page()
            page.goto(f"/setup?token={setup.access.link_token}")
            page.get_by_role("button", name="Begin").click()
            page.get_by_role("button", name="Use these files").click()
            page.get_by_label("A column says it").check()
            page.get_by_label("Column", exact=True).select_option("person")
            page.get_by_role("button", name="Continue").click()
            page.wait_for_url("**/setup/columns")
            page.get_by_role("button", name="Continue").click()
            page.wait_for_url("**/setup/budget")
            page.get_by_role("slider").fill("6")
            keep(page, "setup")
            server.should_exit = True
            thread.join()


async def _go_on() -> None:
    """Nothing starts after the set-up of a picture."""


def saved(page: Page) -> str:
    """Save two questions on a dashboard, and return its address."""
    for title, (sql, epsilon, groups) in zip(("Many visits", "Visits by plan"), QUESTIONS, strict=True):
        page.goto("/ask")
        page.get_by_label("SQL query").fill(sql)
        page.get_by_label("Privacy cost (ε)").fill(epsilon)
        page.get_by_text("Contribution limits per person").click()
        page.get_by_label("Maximum groups").fill(groups)
        page.get_by_text("Save this question").click()
        page.get_by_label("Title").fill(title)
        page.get_by_label("Dashboard (optional)").fill("Doctor visits")
        page.get_by_role("button", name="Save question").click()
        page.wait_for_selector(".tiles")
    return page.url


def attack(page: Page) -> None:
    """Run an attack in the lab, on data that is everybody's."""
    page.goto("/explain/lab?attack=differencing&table=health&epsilons=0.1,0.5,1,2,5")
    page.get_by_role("button", name="Run attack").click()
    page.wait_for_selector("#plot", timeout=180_000)


def keep(page: Page, name: str) -> None:
    """Take a picture of the page, down to a maximum height, with the largest palette that keeps it small."""
    whole = Image.open(BytesIO(page.screenshot(full_page=True))).convert("RGB")
    picture = whole.crop((0, 0, whole.width, min(whole.height, TALLEST[whole.width])))
    path = PLACE / f"{name}-{page.viewport_size['width'] if page.viewport_size else 0}.png"
    for colors in PALETTES:
        small = picture.quantize(colors=colors, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        small.save(path, optimize=True)
        size = path.stat().st_size
        if size <= MOST:
            print(f"{path.relative_to(PLACE.parents[1])}: {size:,} bytes, {colors} colors")
            return
    raise SystemExit(f"{path} has more than {MOST:,} bytes")


def main() -> None:
    PLACE.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder, serving(Path(folder)) as (url, service), sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        ana, ben = (service.accounts.issue(name, "analyst", 90).text for name in ("ana", "ben"))
        owner = service.accounts.issue("owner", "owner", 90).text
        first = entered(browser, url, ana, WIDTHS[0])
        for sql, epsilon, groups in QUESTIONS:
            ask(first, sql, epsilon, groups, "Run for ε")
        dashboard = saved(first)
        other = entered(browser, url, ben, WIDTHS[0])
        ask(other, "SELECT AVG(spending) AS dollars FROM health", "0.4", "1", "Run for ε")
        other.goto("/")
        other.get_by_label("Additional ε").fill("0.5")
        other.get_by_label("Reason").fill("The costs once more, by plan, for the second paper.")
        other.get_by_role("button", name="Send request").click()
        other.wait_for_selector(".notice")
        for width in WIDTHS:
            set_up(browser, width)
            page = entered(browser, url, ana, width)
            keep(page, "home")
            ask(page, LAST, "0.2", "1", "Estimate (free)")
            keep(page, "estimate")
            page.get_by_role("button", name="Run for ε").click()
            page.wait_for_selector("#answer")
            keep(page, "ask")
            page.goto(dashboard)
            keep(page, "dashboard")
            page.goto("/datasets/health")
            keep(page, "dataset")
            page.goto("/releases")
            keep(page, "releases")
            page.get_by_role("link", name="Open").first.click()
            page.wait_for_selector("#methods")
            keep(page, "release")
            office = entered(browser, url, owner, width)
            office.goto("/curate")
            keep(office, "curate")
            office.goto("/oversight")
            keep(office, "oversight")
            office.goto("/explain?epsilon=1&delta=1e-7&people=5912")
            office.get_by_role("button", name="Verify the ledger").click()
            office.wait_for_selector("#audit .notice")
            keep(office, "explain")
            office.goto("/explain/crowd?study=attributes")
            keep(office, "crowd")
            office.goto("/explain/lab?attack=linkage")
            keep(office, "lab")
            attack(office)
            keep(office, "attack")
        browser.close()


if __name__ == "__main__":
    main()
