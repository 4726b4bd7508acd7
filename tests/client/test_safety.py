"""The token is seen by the server alone: never in a text, a log, an error, or in the open."""

import logging
import pickle
import ssl
import subprocess
import threading
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.server.conftest import World

import hubbub
from hubbub.client.address import BearerToken, base
from hubbub.client.session import connect
from hubbub.errors import AccessError, HubbubError, ParameterError, ServerError

SECRET = "hub_0123456789ab_averysecrettoken"


@pytest.mark.parametrize(
    "url",
    [
        "http://data.example",
        "http://10.0.0.7:8321",
        "http://localhost.example",
        "http://127.0.0.1.example",
        "http://[2001:db8::1]",
        "http://0.0.0.0:8321",
    ],
)
def test_nothing_is_sent_in_the_open_beyond_this_machine(url: str) -> None:
    for open_one in (hubbub.connect, hubbub.connect_async):
        with pytest.raises(ParameterError, match="HB181"):
            open_one(url, SECRET)
    assert str(base(url, insecure=True)).startswith(url)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "http://127.9.9.9"])
def test_this_machine_needs_no_tls(url: str) -> None:
    assert str(base(url, insecure=False)) == f"{url}/api/v1/"


@pytest.mark.parametrize(
    "url", ["", "data.example", "ftp://data.example", "https://", "https://ana:secret@data.example", "https://x?a=b", 7]
)
def test_what_is_no_address_is_refused_without_repeating_it(url: Any) -> None:
    with pytest.raises(ParameterError, match="HB180") as caught:
        hubbub.connect(url, SECRET)
    assert "secret@" not in str(caught.value)


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "ümlaut", "x" * 10_000])
def test_what_is_no_token_is_refused_without_repeating_it(token: str) -> None:
    with pytest.raises(ParameterError, match="HB182") as caught:
        hubbub.connect("https://data.example", token)
    assert not token or token not in str(caught.value)


@pytest.mark.parametrize("answer", ["refused", "reset", "401", "html"])
def test_no_error_has_the_token(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    problem = {"code": "HB701", "detail": "no.", "remedy": "", "position": None}

    def handle(request: httpx2.Request) -> httpx2.Response:
        assert request.headers["Authorization"] == f"Bearer {SECRET}"
        if answer in ("refused", "reset"):
            raise httpx2.ConnectError(answer, request=request)
        return httpx2.Response(401, json=problem) if answer == "401" else httpx2.Response(200, text="<html>")

    with pytest.raises(HubbubError) as caught:
        connect("https://data.example", SECRET, transport=httpx2.MockTransport(handle))
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    here = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    frames = [frame for frame in here.stack if "hubbub/client" in frame.filename and frame.name != "connect"]
    assert frames
    assert SECRET not in repr([frame.locals for frame in frames])


def test_neither_texts_nor_logs_have_the_token(world: World, caplog: pytest.LogCaptureFixture) -> None:
    token = world.tokens["ana"]
    secret = token[-16:]
    with caplog.at_level(logging.DEBUG), hubbub.connect(world.url, token) as found:
        found.query("SELECT COUNT(*) AS n FROM health", epsilon=1)
        shown = repr(found) + repr(vars(found)) + repr(found._client.headers) + repr(found._client._auth)
    assert repr(found) == f"<ana at {world.url}/api/v1/>"
    assert secret not in shown
    assert secret not in caplog.text
    assert len(caplog.records) > 3
    assert repr(BearerToken("abc")) == str(BearerToken("abc")) == "Token(…)"
    with pytest.raises(TypeError):
        pickle.dumps(BearerToken("abc"))


def test_a_wrong_token_is_found_out_at_once(world: World) -> None:
    with pytest.raises(AccessError, match="HB701"):
        hubbub.connect(world.url, SECRET)


def test_a_proxy_of_the_environment_does_not_see_what_is_not_encrypted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with hubbub.connect(world.url, world.tokens["ana"]) as found:
        assert found.analyst == "ana"


# --- TLS


class _Me(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.seen.append(self.headers["Authorization"])  # type: ignore[attr-defined]
        body = b'{"name": "ana", "role": "analyst", "expires": 0}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[tuple[str, Path, list[str]]]:
    """A server with a certificate that it signed itself: its address, the certificate, the tokens that it saw."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "1",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-keyout",
            key,
            "-out",
            certificate,
        ],
        check=True,
        capture_output=True,
    )
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Me)
    seen: list[str] = []
    server.seen = seen  # type: ignore[attr-defined]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}", certificate, seen
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_certificate_is_verified_unless_told_otherwise(encrypted: tuple[str, Path, list[str]]) -> None:
    url, certificate, seen = encrypted
    with pytest.raises(ServerError, match="HB803"):
        hubbub.connect(url, SECRET)
    assert seen == []
    with hubbub.connect(url, SECRET, ca=certificate) as found:
        assert found.analyst == "ana"
    with hubbub.connect(url, SECRET, insecure=True) as found:
        assert found.analyst == "ana"
    assert seen == [f"Bearer {SECRET}"] * 2


def test_a_file_without_certificates_is_named(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    for path in (empty, tmp_path / "missing.pem"):
        with pytest.raises(ParameterError, match="HB183"):
            hubbub.connect("https://data.example", SECRET, ca=path)
