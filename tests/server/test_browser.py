"""The pages in a real browser: headless Chromium, driven by Playwright, against a real server on this machine."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

COUNT = "SELECT COUNT(DISTINCT person) AS n FROM health"
GROUPED = "SELECT health, COUNT(DISTINCT person) AS n FROM health GROUP BY health"


def ask(page: Page, sql: str = COUNT, epsilon: str = "0.5") -> None:
    """Fill in the form."""
    page.goto("/ask")
    page.get_by_label("SQL query").fill(sql)
    page.get_by_label("Privacy cost (ε)").fill(epsilon)


def spend(page: Page) -> None:
    page.get_by_role("button", name="Run for ε").click()
    expect(page.get_by_role("heading", name="Answer", exact=True)).to_be_visible()


def spent_bar(page: Page) -> float:
    """The width of the first bar on the page, in percent."""
    return float((page.locator("svg.budget .spent").first.get_attribute("width") or "").removesuffix("%"))


def test_a_new_analyst_signs_in_estimates_spends_and_sees_the_bar_move(desk: Callable[..., Any], served: Any) -> None:
    page = desk().sign_in("ana")
    assert spent_bar(page) == 0
    expect(page.locator(".outlook").first).to_contain_text("margin of error of ±")
    page.get_by_role("link", name="Query", exact=True).first.click()
    page.get_by_role("button", name="Count by health").click()
    expect(page.get_by_label("SQL query")).to_have_value(re.compile("GROUP BY health"))
    page.get_by_label("Privacy cost (ε)").fill("0.5")
    page.get_by_role("button", name="Estimate (free)").click()
    expect(page.get_by_role("heading", name="Estimate")).to_be_visible()
    expect(page.locator("[data-margin]").first).to_contain_text("±")
    assert served.spent() == {"health": "0"}
    spend(page)
    expect(page.locator("#answer tbody tr")).to_have_count(4)
    assert re.search(r"\d ±\d|\(\d.* to \d", page.locator("#answer tbody").inner_text())
    assert page.locator("svg.hub-bars .hub-interval").count() >= 4
    page.get_by_role("link", name="Home").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Datasets")
    assert spent_bar(page) == 5
    assert served.spent() == {"health": "1/2"}


def test_the_slider_moves_price_error_odds_and_likely_answers(desk: Callable[..., Any]) -> None:
    page = desk().sign_in("ana")
    ask(page)
    page.get_by_role("button", name="Estimate (free)").click()
    expect(page.get_by_role("heading", name="Estimate")).to_be_visible()
    slider = page.get_by_role("slider")
    margin, belief = page.locator("[data-margin]").first, page.locator('[data-live="belief"]')
    dot = page.locator("svg.likely circle").first
    before = margin.inner_text(), belief.inner_text(), dot.get_attribute("cx")
    slider.press("End")
    expect(page.get_by_label("Privacy cost (ε)")).to_have_value("2")
    expect(page.get_by_role("button", name="Run for ε = 2")).to_be_visible()
    after = margin.inner_text(), belief.inner_text(), dot.get_attribute("cx")
    assert all(old != new for old, new in zip(before, after, strict=True))
    assert float(after[0].strip("±")) < float(before[0].strip("±")) / 3
    assert "88.1% sure" in after[1]
    assert float((after[2] or "").strip("%")) > float((before[2] or "").strip("%"))


def test_a_reload_and_the_back_button_never_charge_again(desk: Callable[..., Any], served: Any) -> None:
    page = desk().sign_in("ana")
    ask(page)
    spend(page)
    answer = page.locator("#answer tbody").inner_text()
    assert page.url.endswith("#answer")
    page.reload()
    assert page.locator("#answer tbody").inner_text() == answer
    page.go_back()
    expect(page.get_by_label("SQL query")).to_have_value(COUNT)
    spend(page)
    assert page.locator("#answer tbody").inner_text() == answer
    page.go_back()
    page.go_forward()
    assert page.locator("#answer tbody").inner_text() == answer
    assert served.spent() == {"health": "1/2"}


def test_the_way_back_to_an_estimate_is_open_until_signed_out(desk: Callable[..., Any], served: Any) -> None:
    opened = desk()
    page = opened.sign_in("ana")
    ask(page)
    page.get_by_role("button", name="Estimate (free)").click()
    expect(page.get_by_role("heading", name="Estimate")).to_be_visible()
    spend(page)
    page.go_back()
    expect(page.get_by_role("heading", name="Estimate")).to_be_visible()
    expect(page.get_by_label("Privacy cost (ε)")).to_have_value("0.5")
    spend(page)
    assert served.spent() == {"health": "1/2"}
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_a_double_click_is_one_charge(desk: Callable[..., Any], served: Any) -> None:
    page = desk().sign_in("ana")
    ask(page)
    page.get_by_role("button", name="Run for ε").dblclick(no_wait_after=True)
    expect(page.get_by_role("heading", name="Answer", exact=True)).to_be_visible()
    assert served.spent() == {"health": "1/2"}


def test_two_tabs_spending_at_once_stay_within_the_budget(desk: Callable[..., Any], served: Any) -> None:
    """ben has ε = 1 on health; each tab wants 0.7 of it for a question of its own."""
    opened = desk()
    opened.sign_in("ben")
    tabs = [opened.page, opened.tab()]
    for place, page in enumerate(tabs):
        ask(page, f"{COUNT} WHERE age > {place + 20}", "0.7")
    for page in tabs:
        page.evaluate("() => { document.getElementById('spend').click(); }")
    for page in tabs:
        page.wait_for_selector("#answer, [role=alert]")
    refused = [page for page in tabs if page.get_by_role("alert").count()]
    assert len(refused) == 1
    expect(refused[0].get_by_role("alert")).to_contain_text("HB201")
    expect(refused[0].get_by_role("alert")).to_contain_text("Nothing was run or charged")
    assert served.spent("ben")["health"] == "7/10"


def test_an_exhausted_budget_is_refused_in_words(desk: Callable[..., Any], served: Any) -> None:
    page = desk().sign_in("ben")
    ask(page, COUNT, "1")
    spend(page)
    ask(page, f"{COUNT} WHERE age > 30", "0.5")
    page.get_by_role("button", name="Estimate (free)").click()
    expect(page.get_by_text("Over budget")).to_be_visible()
    page.get_by_role("button", name="Run for ε").click()
    expect(page.get_by_role("alert")).to_contain_text("HB201")
    expect(page.get_by_label("SQL query")).to_have_value(f"{COUNT} WHERE age > 30")
    page.get_by_role("link", name="Home").click()
    expect(page.locator("article").filter(has=page.get_by_role("link", name="health"))).to_contain_text(
        "Your budget is used up"
    )
    assert served.spent("ben")["health"] == "1"


def test_asking_again_with_more_budget_combines(desk: Callable[..., Any], served: Any) -> None:
    page = desk().sign_in("ana")
    ask(page, GROUPED)
    spend(page)
    page.get_by_label("Privacy cost of the second run (ε)").fill("1")
    page.get_by_role("button", name="Run again and combine").click()
    expect(page.get_by_role("heading", name="Combined answer")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Combined answer")).to_be_visible()
    assert served.spent() == {"health": "3/2"}


HOSTILE = (
    "SELECT * FROM health",
    "SELECT COUNT(*) FROM health; DROP TABLE health",
    "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
    "SELECT '<img src=x onerror=alert(1)>' FROM health",
    "SELECT COUNT(*) FROM secret_table",
)


def test_hostile_sql_is_refused_at_no_cost(desk: Callable[..., Any], served: Any) -> None:
    opened = desk()
    page = opened.sign_in("ana")
    opened.context.on("dialog", lambda dialog: opened.complaints.append(dialog.message))
    for sql in HOSTILE:
        ask(page, sql)
        page.get_by_role("button", name="Run for ε").click()
        expect(page.get_by_role("alert")).to_contain_text("HB5")
        expect(page.get_by_role("alert")).to_contain_text("Nothing was run or charged")
        assert page.locator("main img").count() == 0
    assert served.spent() == {"health": "0"}


def test_wrong_and_expired_tokens_do_not_enter(desk: Callable[..., Any], served: Any) -> None:
    page = desk().page
    page.goto("/ask")
    for text, words in (("nonsense", "not valid"), ("hub_000000000000_" + "x" * 43, "not valid")):
        page.get_by_label("Your token").fill(text)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text(words)
    issued = served.service.accounts.issue("ana", "analyst", 1)
    clock = served.service.accounts.clock
    served.service.accounts.clock = lambda: clock() + 2 * 86_400
    try:
        page.get_by_label("Your token").fill(issued.text)
        page.goto("/sign-in")
        page.get_by_label("Your token").fill(issued.text)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("expired")
    finally:
        served.service.accounts.clock = clock


def test_a_session_ends_with_its_token_and_by_signing_out(desk: Callable[..., Any], served: Any) -> None:
    page = desk().sign_in("ana")
    served.service.accounts.revoke(served.tokens["ana"].split("_")[1])
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page = desk().sign_in("ben")
    page.get_by_role("button", name="Sign out").click()
    page.goto("/ask")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_the_owner_adds_an_analyst_and_grants_a_request(desk: Callable[..., Any], served: Any) -> None:
    page = desk().sign_in("ana")
    page.get_by_label("Additional ε").fill("2")
    page.get_by_label("Reason").fill("A second study.")
    page.get_by_role("button", name="Send request").click()
    expect(page.get_by_role("status")).to_contain_text("sent to the data owner")
    owner = desk().sign_in("owner")
    owner.get_by_role("link", name="Administration").click()
    row = owner.locator("#requests tbody tr")
    expect(row).to_contain_text("A second study.")
    row.get_by_label("Note to ana").fill("Fine.")
    row.get_by_role("button", name="Grant").click()
    expect(owner.get_by_role("status")).to_contain_text("Request granted")
    expect(owner.locator("#requests tbody tr")).to_contain_text("granted")
    page.goto("/")
    expect(page.locator("article").first).to_contain_text("of ε = 12 spent")
    expect(page.locator("#more")).to_contain_text("Fine.")
    owner.get_by_text("Add an analyst").click()
    owner.get_by_label("Name", exact=True).fill("zoe")
    owner.get_by_label("Cap (ε)").fill("1.5")
    owner.get_by_role("button", name="Add analyst and create token").click()
    served.tokens["zoe"] = owner.locator("#issued").inner_text()
    newcomer = desk().sign_in("zoe")
    expect(newcomer.locator("article").first).to_contain_text("0 of ε = 1.5 spent")


def test_the_auditor_verifies_the_ledger_and_prints_the_report(desk: Callable[..., Any]) -> None:
    page = desk().sign_in("ana")
    ask(page)
    spend(page)
    auditor = desk().sign_in("auditor")
    auditor.get_by_role("link", name="Explain and audit").click()
    auditor.get_by_role("button", name="Verify the ledger").click()
    expect(auditor.get_by_role("status")).to_contain_text("The ledger is verified.")
    auditor.get_by_role("link", name="Printable report").click()
    expect(auditor.get_by_role("heading", level=1)).to_have_text("Privacy report")
    expect(auditor.locator("main")).to_contain_text(COUNT)
    auditor.emulate_media(media="print")
    expect(auditor.locator("header.top")).to_be_hidden()


def test_the_editor_of_hubbub_yaml_colors_completes_and_shows_changes_before_it_saves(
    desk: Callable[..., Any], served: Any
) -> None:
    page = desk().sign_in("owner")
    page.goto("/curate")
    editor = page.get_by_label("Datasets, privacy units, bounds, and caps")
    expect(page.locator(".editor .y-comment").first).to_contain_text("# The demo's data")
    expect(page.locator(".editor .y-key").first).to_have_text("version:")
    expect(page.locator(".editor .y-number").first).to_have_text("1")
    assert page.locator(".editor .paint").text_content() == editor.input_value() + "\n"
    editor.evaluate("(box) => box.setSelectionRange(box.value.indexOf('    budget'), box.value.indexOf('    budget'))")
    editor.focus()
    page.keyboard.insert_text("    fail\n")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("group", name="Possible here").get_by_role("button")).to_have_text(["failures"])
    page.keyboard.press("Control+ ")
    page.keyboard.press("Enter")
    expect(editor).to_be_focused()
    page.keyboard.insert_text("5")
    # within braces: the keys of a cap, whose other key is there already
    editor.evaluate("(box) => { const at = box.value.indexOf('30, delta') + 4; box.setSelectionRange(at, at); }")
    page.keyboard.insert_text("per_q")
    expect(page.get_by_role("group", name="Possible here").get_by_role("button")).to_have_text(["per_query"])
    for _ in "per_q":
        page.keyboard.press("Backspace")
    expect(page.get_by_role("button", name="Apply")).to_have_count(0)
    page.get_by_role("button", name="Check and show changes").click()
    expect(page.locator(".diff .plus").last).to_have_text("+    failures: 5")
    assert "failures" not in (served.folder / "hubbub.yaml").read_text()
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("status").first).to_contain_text("hubbub.yaml was updated")
    assert "    failures: 5\n" in (served.folder / "hubbub.yaml").read_text()


def test_the_tour_marks_what_it_talks_about_and_can_be_left(desk: Callable[..., Any]) -> None:
    page = desk().sign_in("ana")
    page.goto("/ask")
    page.get_by_text("New here? A tour of this page").click()
    page.get_by_role("button", name="Show me").click()
    panel = page.get_by_role("dialog", name="Tour")
    marked = [page.locator("#examples-heading"), page.locator("#sql"), page.locator("#epsilon"), None, None, None]
    marked[3:5] = [page.get_by_role("button", name="Estimate (free)"), page.get_by_role("button", name="Run for ε")]
    for number, place in enumerate(marked, 1):
        expect(panel).to_contain_text(f"{number} of 6: ")
        expect(page.locator(".toured")).to_have_count(0 if place is None else 1)
        if place is not None:
            expect(place).to_have_class(re.compile("toured"))
        page.keyboard.press("Enter")  # Next has the focus
    expect(panel).to_have_count(0)
    expect(page.get_by_role("button", name="Show me")).to_be_focused()
    for key in ("Enter", "Enter", "Shift+Tab", "Enter"):  # start, Next, and Back to the first step
        page.keyboard.press(key)
    expect(panel).to_contain_text("1 of 6: ")
    expect(page.get_by_role("button", name="Next")).to_be_focused()
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(page.locator(".toured")).to_have_count(0)


def test_a_card_for_each_dataset_and_a_token_that_is_revoked_after_a_question(
    desk: Callable[..., Any], served: Any
) -> None:
    page = desk().sign_in("ana")
    ask(page)
    spend(page)
    owner = desk().sign_in("owner")
    owner.goto("/curate")
    card = owner.get_by_role("region", name="health")
    expect(card).to_contain_text("0.5 of ε = 30 spent by all analysts")
    expect(card).to_contain_text("ε = 0.5 was spent in the last 30 days. At this rate, the rest lasts until about")
    expect(card).to_contain_text("ana: 0.5 of ε = 10 spent")
    expect(owner.get_by_role("region", name="wards")).to_contain_text("Nothing was spent in the last 30 days.")
    row = owner.locator("#tokens tbody tr").filter(has_text=served.tokens["ana"][4:16])
    row.get_by_role("button", name="Revoke…").click()
    expect(owner.get_by_role("alert")).to_contain_text("cannot be revived")
    owner.get_by_role("link", name="Cancel").click()
    page.goto("/releases")
    expect(page.get_by_role("heading", level=1)).to_have_text("Releases")
    row.get_by_role("button", name="Revoke…").click()
    owner.get_by_role("alert").get_by_role("button", name="Revoke").click()
    expect(owner.get_by_role("status").first).to_contain_text("The token was revoked")
    page.goto("/releases")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


#: What is wider than it shows and cannot be scrolled by keyboard.
STUCK = """[...document.querySelectorAll(".scroll, .results, pre")].filter(
    (place) => place.scrollWidth > place.clientWidth + 1 && place.tabIndex !== 0).length"""


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (320, "dark")])
def test_every_page_fits_and_is_quiet(desk: Callable[..., Any], width: int, scheme: str) -> None:
    """No script error, no violation of the policy, and nothing wider than the window, also with letters twice as large.

    A browser at 200% lays a page out for half of its pixels. What scrolls inside of a page can be scrolled by keyboard.
    """
    options: dict[str, Any] = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    page = desk(**options).sign_in("ana")
    ask(page, GROUPED)
    page.get_by_role("button", name="Estimate (free)").click()
    expect(page.get_by_role("heading", name="Estimate")).to_be_visible()
    widths = [page.evaluate("document.documentElement.scrollWidth")]
    spend(page)
    number = page.url.partition("release=")[2].partition("#")[0]
    addresses = (
        "/",
        f"/ask?release={number}",
        "/datasets/health",
        "/releases",
        f"/releases/{number}",
        "/saved",
        "/explain",
        "/docs",
        "/no",
    )
    owner = desk(**options).sign_in("owner")
    for each, paths in ((page, addresses), (owner, ("/", "/curate", "/explain", "/explain/report"))):
        for path in paths:
            each.goto(path)
            widths.append(each.evaluate("document.documentElement.scrollWidth"))
            assert each.evaluate(STUCK) == 0, path
            if width == 1280:
                each.set_viewport_size({"width": width // 2, "height": 400})
                assert each.evaluate("document.documentElement.scrollWidth") <= width // 2, path
                each.set_viewport_size(options["viewport"])
    assert max(widths) <= width


def test_pages_read_without_a_script(desk: Callable[..., Any], served: Any) -> None:
    page = desk(java_script_enabled=False).sign_in("ana")
    ask(page, GROUPED)
    page.get_by_role("button", name="Estimate (free)").click()
    expect(page.get_by_role("heading", name="Estimate")).to_be_visible()
    page.get_by_role("button", name="Run for ε").click()
    expect(page.locator("#answer tbody tr")).to_have_count(4)
    expect(page.locator(".slider")).to_be_hidden()
    page.goto("/ask")
    expect(page.locator("noscript").first).to_be_attached()
    assert served.spent() == {"health": "1/2"}


def test_single_keys_open_pages_but_not_while_typing(desk: Callable[..., Any]) -> None:
    page = desk().sign_in("ana")
    expect(page.get_by_role("button", name="Keyboard shortcuts")).to_be_visible()  # the script has run
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("g")
    page.keyboard.press("q")
    page.wait_for_url("**/ask")
    expect(page.get_by_role("button", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_label("SQL query")).to_be_focused()
    page.get_by_label("SQL query").fill("")
    page.keyboard.type("g/s?")
    expect(page.get_by_label("SQL query")).to_have_value("g/s?")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Keyboard shortcuts").click()
    page.get_by_label("Turn these keys off").check()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_everything_is_reached_by_the_keyboard(desk: Callable[..., Any]) -> None:
    page = desk().sign_in("ana")
    page.goto("/ask")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to main content")).to_be_focused()
    page.get_by_label("SQL query").focus()
    page.keyboard.insert_text(COUNT)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="Estimate")).to_be_visible()
    page.get_by_role("button", name="Estimate (free)").focus()
    for name in ("Try on made-up rows (free)", "Run for ε"):  # what is free comes before what is paid for
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name=name)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Answer", exact=True)).to_be_visible()


def test_light_and_dark_can_be_switched_and_are_remembered(desk: Callable[..., Any]) -> None:
    page = desk(color_scheme="light").sign_in("ana")
    body, light, dark = page.locator("body"), "rgb(247, 248, 247)", "rgb(18, 24, 26)"
    expect(body).to_have_css("background-color", light)
    page.get_by_role("button", name="Dark").click()
    expect(body).to_have_css("background-color", dark)
    page.goto("/explain")
    expect(body).to_have_css("background-color", dark)
    printed = "getComputedStyle(document.documentElement).colorScheme"
    page.emulate_media(media="print")
    assert page.evaluate(printed) == "light"
    page.emulate_media(media="screen", color_scheme="dark")
    page.get_by_role("button", name="Light").click()
    expect(body).to_have_css("background-color", light)
    page.context.clear_cookies(name="hubbub-theme")
    page.reload()
    expect(body).to_have_css("background-color", dark)


def test_the_policy_stops_a_planted_inline_script(desk: Callable[..., Any]) -> None:
    """The alarm of these tests works: a script that somebody planted is not run, and the browser complains."""
    opened = desk()
    page = opened.sign_in("ana")
    page.evaluate("""() => {
        const planted = document.createElement("script");
        planted.textContent = "document.title = 'planted'";
        document.body.append(planted);
    }""")
    assert page.title() == "Datasets · hubbub"
    assert any("Content Security Policy" in text for text in opened.complaints)
    opened.complaints.clear()
