"""Browsers without a script: how a page is outlined, the word of its forms, a question that is paid for."""

import re
from collections.abc import Callable
from html.parser import HTMLParser

import httpx

#: Signs somebody in, and gives their browser.
Visitor = Callable[[str], httpx.Client]

COUNT = "SELECT COUNT(DISTINCT person) AS n FROM health"


class Outline(HTMLParser):
    """What a screen reader and a strict policy care about."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.title = ""
        self._in_title = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in_title = tag == "title"

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
            self._in_title = False

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag in tags]


def token(page: httpx.Response) -> str:
    """The word that the page's forms carry."""
    found = re.search(r'name="csrf" value="([^"]+)"', page.text)
    assert found is not None
    return found[1]


def spend(
    client: httpx.Client, sql: str = COUNT, *, page: httpx.Response | None = None, **fields: str
) -> httpx.Response:
    """Send the form that spends, as it stands on the page."""
    page = page or client.get("/ask")
    key = re.search(r'name="key" value="([^"]+)"', page.text)
    assert key is not None
    data = {"csrf": token(page), "key": key[1], "sql": sql, "epsilon": "0.5", "groups": "", "rows": "", **fields}
    return client.post("/ask/spend", data=data)
