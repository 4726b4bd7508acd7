"""Where a server is and who asks: an address that keeps the token safe, and a token that nothing shows."""

import re
import ssl
from collections.abc import Generator
from ipaddress import ip_address
from pathlib import Path

import httpx

from hubbub.errors import ParameterError

PREFIX = "/api/v1/"

_TOKEN = re.compile(r"[\x21-\x7e]{1,8192}", re.ASCII)


class BearerToken(httpx.Auth):
    """A token on its way into one header; it has no text, so that no log and no traceback can have it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        if not _TOKEN.fullmatch(text):
            raise ParameterError(
                "HB182", "the token is not of the form that a token has.", "Give it as the owner gave it, in one line."
            )
        self._text = text

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Put it into the request."""
        request.headers["Authorization"] = f"Bearer {self._text}"
        yield request

    def __repr__(self) -> str:
        return "Token(…)"

    def __reduce__(self) -> str:
        raise TypeError("a token is not to be pickled")


def base(url: str, *, insecure: bool) -> httpx.URL:
    """Give the address of the API; without TLS only on this machine, unless that is insisted on.

    >>> base("https://data.example.org/curator", insecure=False)
    URL('https://data.example.org/curator/api/v1/')
    """
    try:
        given = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        given = httpx.URL("")
    if given.scheme not in ("http", "https") or not given.host:
        raise ParameterError("HB180", "this is not the address of a server.", "Write https://data.example.org.")
    if given.userinfo or given.query or given.fragment:
        raise ParameterError(
            "HB180", "the address has a name, a password or a query in it.", "Give the address alone, and token=."
        )
    if given.scheme == "http" and not (insecure or local(given.host)):
        raise ParameterError(
            "HB181",
            f"http:// to {given.host} would send the token and the answers in the open.",
            "Use https://; or, where the network is trusted, say insecure=True.",
        )
    return given.copy_with(path=given.path.removesuffix("/") + PREFIX)


def local(host: str) -> bool:
    """Say whether a host is this machine.

    >>> local("127.0.0.1"), local("localhost"), local("localhost.example.org"), local("10.0.0.1")
    (True, True, False, False)
    """
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def trust(*, ca: str | Path | None, insecure: bool) -> ssl.SSLContext:
    """Say whose certificates are trusted: those of the system, or of one file; all of them if that is insisted on."""
    try:
        context = ssl.create_default_context(cafile=None if ca is None else str(ca))
    except (OSError, ssl.SSLError):
        raise ParameterError(
            "HB183", f"there are no certificates in {str(ca)!r}.", "Give ca= a file of certificates in PEM form."
        ) from None
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
