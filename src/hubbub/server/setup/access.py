"""Who may use the set-up page: the browser that first opened the link of the terminal, and nobody else.

The page decides who is protected and creates the owner's token, so whoever reaches it first must be the person at the
terminal. It listens on the loopback address only. The link has 256 random bits and works once: it is exchanged for a
cookie, which every later request needs, and every form also carries a token computed from the cookie. The Host header
must name this machine, or a web page elsewhere could resolve its own name to this machine and read the responses.

Tested in tests/server/test_setup.py.
"""

import hmac
import re
import secrets
from hashlib import sha256
from threading import Lock

from hubbub.errors import AccessError

COOKIE = "hubbub-setup"
_HOST = re.compile(r"(?:127\.0\.0\.1|localhost)(?::[0-9]{1,5})?", re.ASCII)


class Access:
    """Hands the page to one browser. Safe to use from many threads."""

    def __init__(self) -> None:
        self.link_token = secrets.token_urlsafe(32)
        self._session: str | None = None
        self._lock = Lock()

    def check_host(self, hosts: list[str]) -> None:
        """Reject a request that does not name this machine."""
        if len(hosts) != 1 or not _HOST.fullmatch(hosts[0].lower()):
            raise AccessError(
                "HB383", "The set-up page answers only on this machine.", "Open the link that the terminal shows."
            )

    def check_link(self, given: str) -> None:
        """Reject a link that is not the one of the terminal, or that was used."""
        valid = given.isascii() and hmac.compare_digest(given.encode(), self.link_token.encode())
        if not valid or self._session is not None:
            raise _no_access()

    def begin(self, given: str) -> str:
        """Exchange the link for a session, once; return its cookie."""
        with self._lock:
            self.check_link(given)
            self._session = secrets.token_urlsafe(32)
            return self._session

    def check(self, cookie: str | None) -> None:
        """Reject everybody except the browser that began."""
        known = self._session
        if known is None or not cookie or not cookie.isascii():
            raise _no_access()
        if not hmac.compare_digest(cookie.encode(), known.encode()):
            raise _no_access()

    def csrf(self) -> str:
        """Return the token that every form carries."""
        return hmac.new((self._session or "").encode(), b"hubbub set-up form", sha256).hexdigest()

    def check_form(self, given: str | None) -> None:
        """Reject a form that was not sent from one of these pages."""
        valid = self._session is not None and given is not None and given.isascii()
        if not valid or not hmac.compare_digest((given or "").encode(), self.csrf().encode()):
            raise AccessError(
                "HB711",
                "This form was not sent from a page of your session.",
                "Reload the page and send the form again.",
            )


def _no_access() -> AccessError:
    return AccessError(
        "HB382",
        "This link is not valid, or another browser has used it.",
        "Use the browser in which you began. To begin again, stop `hubbub serve` with Ctrl-C and start it: the terminal"
        " then shows a new link.",
    )
