"""The page in a real browser: it randomizes with the browser's own randomness before anything is sent."""

import json
import math
import shutil
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from hubbub.errors import HubbubError
from hubbub.mechanisms.enumeration import SLACK, worst_ratio
from hubbub.surveys.collector import MAX_BODY, Collector, load_responses
from hubbub.surveys.page import content_security_policy, distribution, render_page, threshold
from hubbub.surveys.survey import TEMPLATE, Survey, SurveyQuestion

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
expect.set_options(timeout=30_000)


def question(answers: int, epsilon: str, *, boxes: bool = False) -> SurveyQuestion:
    return SurveyQuestion(
        name="q", text="", answers=tuple(map(str, range(answers))), epsilon=Fraction(epsilon), boxes=boxes
    )


@pytest.mark.parametrize("epsilon", ["0.000000001", "0.1", "1.0986", "5", "40", "60"])
@pytest.mark.parametrize("answers", [2, 3, 1000])
def test_the_coins_of_the_page_keep_the_price_exactly(epsilon: str, answers: int) -> None:
    """Whole words of 2⁶⁴: the exact loss of what the page sends is at most ε, and next to it."""
    asked = question(answers, epsilon)
    high = worst_ratio(distribution(asked, 0), distribution(asked, 1))[1]
    assert high <= asked.epsilon + SLACK
    assert float(high) == pytest.approx(float(epsilon), rel=1e-3, abs=1e-8) or float(epsilon) > 40
    box = question(4, epsilon, boxes=True)
    high = 4 * worst_ratio(distribution(box, 0), distribution(box, 1))[1]
    assert high <= box.epsilon + SLACK


def test_a_threshold_that_is_rounded_down_would_cost_too_much() -> None:
    """A planted error: one word less than the page has."""
    asked = question(2, "1.0986")
    odds = (2**64 - threshold(asked) + 1) / Fraction(threshold(asked) - 1)
    assert math.log(odds) >= 1.0986 - 1e-15
    assert Fraction(2**64 - threshold(asked), threshold(asked)) < odds


@pytest.mark.parametrize(
    "to", ["http://example.org/x", "ftp://x/y", "//x/y", "https://x/y z", "r;script-src *", "javascript:1"]
)
def test_responses_go_to_safe_places_alone(to: str, survey: Survey) -> None:
    with pytest.raises(HubbubError, match="HB539"):
        render_page(survey, to=to)


def test_the_policy_lets_one_script_run_and_one_address_be_reached(survey: Survey) -> None:
    assert "'none'" in content_security_policy(None).split("connect-src")[1].split(";")[0]
    assert "connect-src 'self'" in content_security_policy("responses")
    for words in ("unsafe", "http:", "*", "eval"):
        assert words not in content_security_policy("responses")


def test_texts_of_a_survey_cannot_become_markup() -> None:
    asked = Survey(
        "</title><script>alert(1)</script>",
        (
            SurveyQuestion(
                name="q", text="</script><img src=x onerror=alert(1)>", answers=("<b>", "&amp;"), epsilon=Fraction(1)
            ),
        ),
    )
    made = render_page(asked, to=None)
    assert "<script>alert" not in made
    assert "<img" not in made
    assert made.count("</script>") == 2


# --- in the browser ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as started:
        launched = started.chromium.launch(executable_path=shutil.which("chromium"), args=list(ARGUMENTS))
        yield launched
        launched.close()


class Desk:
    """A collector, and a browser in front of it."""

    def __init__(self, folder: Path, browser: Browser) -> None:
        self.survey = Survey.parse(TEMPLATE)
        self.kept = folder / "responses.jsonl"
        self.server = Collector(self.survey, self.kept, host="127.0.0.1", port=0)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        self._thread = threading.Thread(target=self.server.serve_forever)
        self._thread.start()
        self.context = browser.new_context()
        self.context.set_default_timeout(30_000)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.sent: list[tuple[str, str, str | None]] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "console", lambda heard: self.complaints.append(heard.text) if heard.type in ("error", "warning") else None
        )
        self.page.on("request", lambda asked: self.sent.append((asked.method, asked.url, asked.post_data)))

    def fill(self) -> Page:
        self.page.goto(self.url)
        for answer in ("yes", "East", "radio", "web"):
            self.page.get_by_label(answer, exact=True).check()
        return self.page

    def submit(self) -> str:
        self.page.get_by_role("button", name="Randomize and send").click()
        expect(self.page.locator("#outcome")).to_be_visible()
        expect(self.page.locator("#state")).not_to_be_empty()
        return self.page.locator("#state").inner_text()

    def posts(self) -> list[Any]:
        return [json.loads(body or "") for method, _, body in self.sent if method == "POST"]

    def close(self) -> None:
        self.context.close()
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


@pytest.fixture
def desk(tmp_path: Path, browser: Browser) -> Iterator[Desk]:
    made = Desk(tmp_path, browser)
    yield made
    made.close()
    assert made.complaints == []


def test_answers_are_randomized_in_the_browser_before_they_are_sent(desk: Desk) -> None:
    """With coins that always lie (words of 0) nothing of what was ticked is sent; with coins that never do, all is."""
    for word, smoke, region, news in (("0n", 0, 3, [0, 2]), ("(1n << 64n) - 1n", 1, 2, [1, 3])):
        desk.context.clear_cookies()
        render_page = desk.fill()
        render_page.evaluate(
            f"""() => {{
                localStorage.clear();
                let turn = 0;
                crypto.getRandomValues = (array) => {{ array[0] = {word}; turn += 1;
                    if (turn === 4 && {word} !== 0n) array[0] = 7n; return array; }};
            }}"""
        )
        before = len(desk.sent)
        assert desk.submit() == "Sent. Thank you."
        assert len(desk.sent) == before + 1
        assert desk.posts()[-1]["answers"] == {"smoke": smoke, "region": region, "news": news}
        assert render_page.locator("input:checked").count() == 0
    found, others = load_responses(desk.survey, desk.kept)
    assert (len(found), others) == (2, 0)
    assert {url for _, url, _ in desk.sent} <= {desk.url, f"{desk.url}responses", f"{desk.url}favicon.ico"}


def test_a_second_try_sends_the_same_response(desk: Desk) -> None:
    for _ in range(3):
        desk.fill()
        assert desk.submit() == "Sent. Thank you."
    assert len({json.dumps(each) for each in desk.posts()}) == 1


def test_the_browser_lies_as_often_as_it_says(desk: Desk) -> None:
    """40,000 draws of each kind in Chromium: 5.6 standard errors each (a false alarm once in 10⁶ runs)."""
    render_page = desk.fill()
    draws = render_page.evaluate(
        """() => { const one = (place, truth) => Array.from({length: 40000}, () =>
            randomize(survey.questions[place], truth));
            return [one(0, 1), one(1, 2), one(2, [false, true, false, true])]; }"""
    )
    for place, truth in ((0, 1), (1, 2)):
        wanted = distribution(desk.survey.questions[place], truth)
        for answer, (chance, _) in wanted.mass.items():
            share, p = sum(each == answer for each in draws[place]) / 40_000, float(chance)
            assert share == pytest.approx(p, abs=5.6 * math.sqrt(p * (1 - p) / 40_000))
    for box, ticked in enumerate((0, 1, 0, 1)):
        p = float(distribution(desk.survey.questions[2], ticked).mass[1][0])
        share = sum(box in each for each in draws[2]) / 40_000
        assert share == pytest.approx(p, abs=5.6 * math.sqrt(p * (1 - p) / 40_000))


def test_too_many_ticks_are_not_sent(desk: Desk) -> None:
    desk.fill().get_by_label("paper", exact=True).check()
    assert desk.submit().startswith("Tick at most 2")
    assert desk.posts() == []


def test_a_page_without_an_address_shows_what_to_hand_in(desk: Desk, tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "survey.html").write_text(render_page(desk.survey, to=None))
    desk.page.goto((tmp_path / "survey.html").as_uri())
    for answer in ("no", "North"):
        desk.page.get_by_label(answer, exact=True).check()
    assert desk.submit().startswith("Copy this")
    assert json.loads(desk.page.locator("#sent").inner_text())["survey"] == desk.survey.identity
    assert desk.posts() == []


def test_the_collector_takes_responses_and_nothing_else(desk: Desk) -> None:
    good = {"survey": desk.survey.identity, "answers": {"smoke": 0, "region": 1, "news": []}}
    kind = {"Content-Type": "application/json"}
    with httpx2.Client(base_url=desk.url) as client:
        assert client.post("/responses", json=good).status_code == 204
        assert client.post("/responses", json={**good, "survey": "x"}).status_code == 422
        assert client.post("/responses", content=b"{", headers=kind).status_code == 422
        assert client.post("/responses", content=b"[" * 60_000, headers=kind).status_code == 422
        assert client.post("/responses", content=b"x" * (MAX_BODY + 1), headers=kind).status_code == 413
        assert client.post("/responses", content=b"{}").status_code == 400
        assert client.post("/other", json=good).status_code == 404
        assert client.get("/other").status_code == 404
        shown = client.get("/")
        assert "frame-ancestors 'none'" in shown.headers["Content-Security-Policy"]
        assert shown.headers["Cache-Control"] == "no-store"
    assert load_responses(desk.survey, desk.kept) == ([good["answers"]], 0)
    assert desk.kept.stat().st_mode & 0o777 == 0o600
