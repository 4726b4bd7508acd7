"""Settings of the server: what they say, in which order they count, and every slip that is refused."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hubbub.config.document import KEYS
from hubbub.errors import ConfigError, HubbubError
from hubbub.server import settings
from hubbub.server.keyring import MIN_KEY
from hubbub.server.settings import OTHER_VARIABLES, VARIABLES, OidcSettings, Settings

SECRET = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("secret", "key.pem", "cert.pem"):
        (tmp_path / name).write_text(f"{SECRET}\n")
        (tmp_path / name).chmod(0o600)
    return tmp_path


def read(folder: Path, server: Any = None, environment: dict[str, str] | None = None, **more: Any) -> Settings:
    document: dict[str, Any] = {"analysts": {"ana": {}}}
    if server is not None:
        document["server"] = server
    return settings.read(
        document,
        base=folder,
        folder=folder / "ledger",
        environment=environment or {},
        **more,
    )


def refused(folder: Path, code: str, server: Any = None, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(HubbubError) as error:
        read(folder, server, environment)
    assert error.value.code == code
    assert SECRET not in str(error.value)
    return str(error.value)


def test_without_a_word_it_is_for_this_machine_alone(folder: Path) -> None:
    found = read(folder)
    assert (found.host, found.port, found.quantum, found.workers, found.queue) == ("127.0.0.1", 8321, 0.1, 4, 32)
    assert (found.behind_proxy, found.secure, found.oidc, found.per_minute) == (False, False, None, 600)
    assert found.url == "http://127.0.0.1:8321"


def test_the_environment_counts_more_than_the_file_and_the_command_line_most(folder: Path) -> None:
    server = {"port": 1, "host": "127.0.0.2", "workers": 7, "quantum": "0.25"}
    environment = {"HUBBUB_PORT": "2", "HUBBUB_HOST": "127.0.0.3"}
    assert (read(folder, server).port, read(folder, server).quantum) == (1, 0.25)
    found = read(folder, server, environment)
    assert (found.port, found.host, found.workers) == (2, "127.0.0.3", 7)
    found = read(folder, server, environment, port=3, host="127.0.0.4")
    assert (found.port, found.host) == (3, "127.0.0.4")


def test_every_key_has_a_variable(folder: Path) -> None:
    keys = {
        *KEYS["server"] - {"tls", "oidc", "postgres", "telemetry", "key_command"},
        *(f"{part}.{k}" for part in ("tls", "oidc", "telemetry") for k in KEYS[f"server.{part}"]),
        *(f"postgres.{k}" for k in KEYS["server.postgres"] - {"analysts", "applications"}),
    }
    assert set(VARIABLES.values()) == keys
    found = read(
        folder,
        None,
        {
            "HUBBUB_HOST": "0.0.0.0",
            "HUBBUB_PORT": "443",
            "HUBBUB_TLS_CERTIFICATE": str(folder / "cert.pem"),
            "HUBBUB_TLS_KEY": str(folder / "key.pem"),
            "HUBBUB_BEHIND_PROXY": "true",
            "HUBBUB_PROXIES": "10.0.0.1, 10.1.0.0/16",
            "HUBBUB_PUBLIC_URL": "https://hubbub.example/",
            "HUBBUB_QUANTUM": "0",
            "HUBBUB_WORKERS": "4",
            "HUBBUB_QUEUE": "0",
            "HUBBUB_PER_MINUTE": "60",
            "HUBBUB_SECRET_FILE": str(folder / "secret"),
            "HUBBUB_OIDC_ISSUER": "https://issuer.example",
            "HUBBUB_OIDC_AUDIENCE": "hubbub",
            "HUBBUB_OIDC_CLAIM": "email",
            "HUBBUB_OIDC_KEYS": "https://issuer.example/keys",
            "HUBBUB_OIDC_OWNERS": "olga",
            "HUBBUB_OIDC_AUDITORS": "aude,eve",
            "HUBBUB_TOKEN": "x",
            "PATH": "/bin",
            "HUBBUBBLE": "y",
        },
    )
    assert found == Settings(
        secret=SECRET.encode(),
        host="0.0.0.0",
        port=443,
        certificate=folder / "cert.pem",
        key=folder / "key.pem",
        behind_proxy=True,
        proxies=("10.0.0.1", "10.1.0.0/16"),
        public_url="https://hubbub.example",
        quantum=0.0,
        workers=4,
        queue=0,
        per_minute=60,
        oidc=OidcSettings(
            "https://issuer.example",
            "hubbub",
            "email",
            "https://issuer.example/keys",
            frozenset({"olga"}),
            frozenset({"aude", "eve"}),
        ),
    )
    assert found.secure
    assert found.url == "https://hubbub.example"


@pytest.mark.parametrize(
    "host",
    [
        "0.0.0.0",
        "::",
        "192.0.2.7",
        "10.0.0.1",
        "hubbub.example",
        "127.0.0.1.evil.example",
        "0",
        "2130706433",
        "127.1",
        "localhost.evil.example",
        "::ffff:10.0.0.1",
        "0.0.0.0.",
        "[::1]x",
    ],
)
def test_an_address_that_others_reach_needs_tls_or_a_proxy(folder: Path, host: str) -> None:
    if host != "[::1]x":
        refused(folder, "HB421", {"host": host})
        refused(folder, "HB421", None, {"HUBBUB_HOST": host})
        with pytest.raises(ConfigError, match="HB421"):
            read(folder, None, None, host=host)
        with pytest.raises(ConfigError, match="HB421"):
            Settings(secret=SECRET.encode(), host=host)
        refused(folder, "HB421", {"host": host, "behind_proxy": False})
        assert read(folder, {"host": host, "behind_proxy": True}).host == host
        assert read(folder, {"host": host, "tls": {"certificate": "cert.pem", "key": "key.pem"}}).secure
    else:
        refused(folder, "HB420", {"host": host})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.53", "::1", "localhost"])
def test_an_address_of_this_machine_needs_nothing(folder: Path, host: str) -> None:
    assert read(folder, {"host": host}).host == host


def test_an_empty_host_is_not_taken_for_every_address(folder: Path) -> None:
    refused(folder, "HB420", {"host": ""})
    refused(folder, "HB420", None, {"HUBBUB_HOST": ""})
    refused(folder, "HB420", {"host": "  "})
    refused(folder, "HB420", {"host": 0})


@pytest.mark.parametrize(
    ("server", "code"),
    [
        ({"prot": 80}, "HB401"),
        ({"tls": {"cert": "x"}}, "HB401"),
        ({"oidc": {"isuer": "x"}}, "HB401"),
        ([], None),
        ("x", "HB403"),
        ({"tls": "x"}, "HB403"),
        ({"oidc": []}, "HB403"),
        ({"port": -1}, "HB420"),
        ({"port": 65536}, "HB420"),
        ({"port": "80"}, "HB420"),
        ({"port": True}, "HB420"),
        ({"port": 80.0}, "HB420"),
        ({"workers": 0}, "HB420"),
        ({"queue": -1}, "HB420"),
        ({"per_minute": 0}, "HB420"),
        ({"quantum": -1}, "HB420"),
        ({"quantum": float("nan")}, "HB420"),
        ({"quantum": 61}, "HB420"),
        ({"quantum": "soon"}, "HB420"),
        ({"behind_proxy": "yes"}, "HB420"),
        ({"behind_proxy": 1}, "HB420"),
        ({"proxies": "10.0.0.1"}, "HB420"),
        ({"proxies": ["*"]}, "HB420"),
        ({"proxies": ["proxy.example"]}, "HB420"),
        ({"public_url": "ftp://x"}, "HB420"),
        ({"public_url": "hubbub.example"}, "HB420"),
        ({"public_url": "https://x/path"}, "HB420"),
        ({"public_url": "javascript:alert(1)"}, "HB420"),
        ({"tls": {"certificate": "cert.pem"}}, "HB425"),
        ({"tls": {"key": "key.pem"}}, "HB425"),
        ({"tls": {"certificate": "gone.pem", "key": "key.pem"}}, "HB425"),
        ({"secret_file": "gone"}, "HB422"),
        ({"secret_file": "."}, "HB422"),
        ({"secret_file": ""}, "HB420"),
        ({"secret_file": 7}, "HB420"),
        ({"oidc": {"issuer": "https://i.example"}}, "HB420"),
        ({"oidc": {"audience": "x"}}, "HB420"),
        ({"oidc": {"issuer": "http://i.example", "audience": "x"}}, "HB420"),
        ({"oidc": {"issuer": "i.example", "audience": "x"}}, "HB420"),
        ({"oidc": {"issuer": "https://i.example", "audience": "x", "keys": "http://i.example/k"}}, "HB420"),
        ({"oidc": {"issuer": "https://i.example", "audience": "x", "keys": "file:///k"}}, "HB420"),
        ({"oidc": {"issuer": "https://i.example", "audience": "x", "owners": "olga"}}, "HB420"),
        ({"oidc": {"issuer": "https://i.example", "audience": "x", "owners": ["ana"]}}, "HB420"),
        ({"oidc": {"issuer": "https://i.example", "audience": "x", "owners": ["o"], "auditors": ["o"]}}, "HB420"),
    ],
)
def test_what_cannot_be_is_refused(folder: Path, server: Any, code: str | None) -> None:
    if code is None:
        assert read(folder, server).port == 8321  # nothing is said
    else:
        refused(folder, code, server)


@pytest.mark.parametrize(
    ("variable", "text", "code"),
    [
        ("HUBBUB_PROT", "80", "HB424"),
        ("HUBBUB_TLS_CERT", "x", "HB424"),
        ("HUBBUB_", "x", "HB424"),
        ("HUBBUB_BEHIND_PROXI", "true", "HB424"),
        ("HUBBUB_SECRETFILE", "x", "HB424"),
        ("HUBBUB_host", "x", "HB424"),
        ("HUBBUB_PORT", "eighty", "HB420"),
        ("HUBBUB_PORT", "", "HB420"),
        ("HUBBUB_PORT", "٨٠", "HB420"),
        ("HUBBUB_BEHIND_PROXY", "yes", "HB420"),
        ("HUBBUB_BEHIND_PROXY", "TRUE", "HB420"),
        ("HUBBUB_QUANTUM", "0,1", "HB420"),
        ("HUBBUB_WORKERS", "-1", "HB420"),
        ("HUBBUB_OIDC_CLAIM", "sub", "HB420"),
        ("HUBBUB_SECRET", "short", "HB422"),
        ("HUBBUB_SECRET", "", "HB422"),
        ("HUBBUB_SECRET", " " * 40, "HB422"),
        ("HUBBUB_SECRET_FILE", "/nowhere/secret", "HB422"),
        ("HUBBUB_SECRET_FILE", "", "HB420"),
    ],
)
def test_a_slip_in_the_environment_is_refused_not_ignored(folder: Path, variable: str, text: str, code: str) -> None:
    refused(folder, code, None, {variable: text})


def test_a_typo_hears_what_was_meant(folder: Path) -> None:
    assert "HUBBUB_BEHIND_PROXY" in refused(folder, "HB424", None, {"HUBBUB_BEHIND_PROXI": "true"})
    assert not set(VARIABLES) & OTHER_VARIABLES


def test_a_secret_can_come_by_file_by_variable_or_by_a_file_that_a_variable_names(folder: Path) -> None:
    (folder / "other").write_text("fedcba9876543210fedcba9876543210")
    (folder / "other").chmod(0o400)
    assert read(folder, {"secret_file": "secret"}).secret == SECRET.encode()
    assert read(folder, None, {"HUBBUB_SECRET": SECRET}).secret == SECRET.encode()
    other = read(folder, {"secret_file": "secret"}, {"HUBBUB_SECRET_FILE": str(folder / "other")})
    assert other.secret == b"fedcba9876543210fedcba9876543210"
    refused(folder, "HB422", None, {"HUBBUB_SECRET": SECRET, "HUBBUB_SECRET_FILE": str(folder / "secret")})
    assert SECRET not in repr(read(folder, {"secret_file": "secret"}))


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o666, 0o602, 0o620, 0o601])
def test_a_secret_that_others_can_read_or_change_is_refused(folder: Path, mode: int) -> None:
    for name in ("secret", "key.pem"):
        (folder / name).chmod(mode)
    refused(folder, "HB423", {"secret_file": "secret"})
    refused(folder, "HB423", None, {"HUBBUB_SECRET_FILE": str(folder / "secret")})
    refused(folder, "HB423", {"tls": {"certificate": "cert.pem", "key": "key.pem"}})


def test_a_secret_that_its_group_may_read_and_a_public_certificate_are_fine(folder: Path) -> None:
    (folder / "secret").chmod(0o640)
    (folder / "cert.pem").chmod(0o644)
    assert read(folder, {"secret_file": "secret", "tls": {"certificate": "cert.pem", "key": "key.pem"}}).secure


def test_a_secret_that_is_empty_short_or_no_file_is_refused(folder: Path) -> None:
    for content in ("", "\n\n", "short"):
        (folder / "secret").write_text(content)
        refused(folder, "HB422", {"secret_file": "secret"})
    os.mkfifo(folder / "pipe", 0o600)
    refused(folder, "HB422", {"secret_file": "pipe"})
    refused(
        folder,
        "HB423" if stat.S_IMODE(Path("/dev/zero").stat().st_mode) & 0o7 else "HB422",
        {"secret_file": "/dev/zero"},
    )


def test_a_secret_is_drawn_once_and_kept_for_its_owner_alone(folder: Path) -> None:
    first, second = read(folder), read(folder)
    assert first.secret == second.secret
    assert len(first.secret) == 43
    kept = folder / "ledger" / "server.key"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert [path.name for path in kept.parent.iterdir()] == ["server.key"]
    kept.chmod(0o644)
    refused(folder, "HB423")


def test_servers_that_start_at_once_draw_one_secret(folder: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        assert len({found.secret for found in pool.map(lambda _: read(folder), range(32))}) == 1


def test_a_check_writes_nothing(folder: Path) -> None:
    read(folder, None, None, make=False)
    assert not (folder / "ledger").exists()
    assert settings.problems("server: {host: 0.0.0.0}", folder)[0].code == "HB421"
    assert settings.problems("server: {port: 1}", folder) == []
    assert settings.problems("a: [", folder) == []


def test_a_folder_that_cannot_be_written_is_an_error_in_words(folder: Path) -> None:
    (folder / "ledger").write_text("a file stands in the way")
    refused(folder, "HB422")


def test_a_key_that_is_made_has_no_spaces_to_lose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check of hubbub.yaml before there is a key makes one; random bytes would begin or end with a space at times."""
    monkeypatch.setattr("secrets.token_bytes", lambda length: b" " * length)
    ways: tuple[dict[str, object], ...] = ({}, {"key_command": ["/bin/true"]})
    for given in ways:
        secret, _ = settings._secret(given, {}, tmp_path, make=False)
        assert secret.strip() == secret
        assert len(secret) >= MIN_KEY
