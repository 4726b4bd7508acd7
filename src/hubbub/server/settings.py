"""Server settings: the `server:` section of hubbub.yaml, then HUBBUB_* variables, then the command line.

Dangerous mistakes are rejected: a public address without TLS, a secret that others can read, and a misspelled variable
that would silently do nothing.
"""

import os
import re
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from fractions import Fraction
from functools import cached_property
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from hubbub.config.document import KEYS, check_keys, expect_mapping, parse_yaml, reject
from hubbub.core import numbers
from hubbub.errors import ConfigError, ParameterError
from hubbub.private_files import create_folder, open_private
from hubbub.server import key_command, keyring, postgres_settings, telemetry_settings
from hubbub.server.keyring import MIN_KEY, Keyring
from hubbub.server.postgres_settings import PostgresSettings, loopback
from hubbub.server.telemetry_settings import TelemetrySettings

#: Environment variables and the settings they override.
VARIABLES: Mapping[str, str] = {
    "HUBBUB_HOST": "host",
    "HUBBUB_PORT": "port",
    "HUBBUB_TLS_CERTIFICATE": "tls.certificate",
    "HUBBUB_TLS_KEY": "tls.key",
    "HUBBUB_BEHIND_PROXY": "behind_proxy",
    "HUBBUB_PROXIES": "proxies",
    "HUBBUB_PUBLIC_URL": "public_url",
    "HUBBUB_QUANTUM": "quantum",
    "HUBBUB_WORKERS": "workers",
    "HUBBUB_QUEUE": "queue",
    "HUBBUB_PER_MINUTE": "per_minute",
    "HUBBUB_FREE_WORKERS": "free_workers",
    "HUBBUB_FREE_SECONDS": "free_seconds",
    "HUBBUB_SECRET_FILE": "secret_file",
    "HUBBUB_OTLP": "telemetry.otlp",
    "HUBBUB_OTLP_HEADERS_FILE": "telemetry.headers_file",
    "HUBBUB_SYSLOG": "telemetry.syslog",
    "HUBBUB_PG_PORT": "postgres.port",
    "HUBBUB_PG_HOST": "postgres.host",
    "HUBBUB_PG_CLEARTEXT": "postgres.cleartext",
    "HUBBUB_PG_PASSWORD": "postgres.password",
    "HUBBUB_PG_CONNECTIONS": "postgres.connections",
    "HUBBUB_OIDC_ISSUER": "oidc.issuer",
    "HUBBUB_OIDC_AUDIENCE": "oidc.audience",
    "HUBBUB_OIDC_CLAIM": "oidc.claim",
    "HUBBUB_OIDC_KEYS": "oidc.keys",
    "HUBBUB_OIDC_OWNERS": "oidc.owners",
    "HUBBUB_OIDC_AUDITORS": "oidc.auditors",
}
#: The secret, and variables read by the command line, the client, and the tests.
OTHER_VARIABLES = frozenset(
    {"HUBBUB_SECRET", "HUBBUB_CONFIG", "HUBBUB_URL", "HUBBUB_TOKEN", "HUBBUB_TOKEN_FILE", "HUBBUB_CAMPAIGN"}
)

_LISTS = frozenset({"proxies", "oidc.owners", "oidc.auditors"})
_TRUTHS = frozenset({"behind_proxy", "postgres.cleartext", "postgres.password"})
_INTEGERS = {
    "port": (0, 65535),
    "postgres.port": (0, 65535),
    "postgres.connections": (1, 10_000),
    "workers": (1, 256),
    "queue": (0, 100_000),
    "per_minute": (1, 1_000_000),
    "free_workers": (2, 64),
    "free_seconds": (1, 600),
}
_ROLES = frozenset({"owners", "auditors"})
#: The name of the systemd credential with the keys that sign sessions.
CREDENTIAL = "hubbub-secret"
_MAX_FILE = 65536  # bytes of a file with a secret


@dataclass(frozen=True)
class OidcSettings:
    """The identity provider. `claim` holds the name of the analyst in hubbub.yaml.

    `keys` is the URL of the issuer's keys, if it should not be discovered; `owners` and `auditors` are the values of
    the claim that have these roles.
    """

    issuer: str
    audience: str
    claim: str = "sub"
    keys: str | None = None
    owners: frozenset[str] = frozenset()
    auditors: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name in ("issuer", "keys"):
            value = getattr(self, name)
            if value is not None and not safe_address(value):
                reject(
                    "HB420",
                    f"server.oidc.{name}",
                    "is not an https:// address",
                    "Keys fetched over plain HTTP could be forged. Use the HTTPS address that the issuer publishes.",
                )
        if not self.audience or not self.claim:
            reject("HB420", "server.oidc", "has an empty audience or claim", "Set both as registered with the issuer.")
        overlap = sorted(self.owners & self.auditors)
        if overlap:
            reject(
                "HB420", "server.oidc", f"lists {overlap[0]} as both owner and auditor", "Give each person one role."
            )


@dataclass(frozen=True)
class Settings:
    """Addresses, limits, and credentials of the server."""

    secret: bytes = field(repr=False)
    secret_path: Path | None = field(default=None, compare=False)
    host: str = "127.0.0.1"
    port: int = 8321
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")
    public_url: str | None = None
    quantum: float = 0.1
    workers: int = 4
    queue: int = 32
    per_minute: int = 600
    free_workers: int = 4
    free_seconds: int = 20
    oidc: OidcSettings | None = None
    postgres: PostgresSettings | None = None
    telemetry: TelemetrySettings | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            reject("HB425", "server.tls", "has only one of certificate and key", "Set both files.")
        if not self.host or not re.fullmatch(r"[\w.:-]+", self.host, re.ASCII):
            reject(
                "HB420",
                "server.host",
                "is not a valid host name or IP address",
                "Use 127.0.0.1 or the address to listen on.",
            )
        if not (loopback(self.host) or self.certificate or self.behind_proxy):
            reject(
                "HB421",
                "server.host",
                f"is {self.host}, which is reachable from other machines, but TLS is not configured",
                "Set `tls: {certificate: …, key: …}`, or `behind_proxy: true` if a proxy terminates TLS.",
            )
        if self.postgres is not None:
            self.postgres.check(self.host, tls=self.certificate is not None)
        if any(len(key.secret) < MIN_KEY for key in keyring.parse(self.secret)):
            reject("HB422", "The server secret", f"is shorter than {MIN_KEY} characters", _HOW_TO_CREATE)

    @cached_property
    def keyring(self) -> Keyring:
        """The keys that sign sessions; those of a file follow the file."""
        return Keyring(self.secret, self.secret_path)

    @property
    def secure(self) -> bool:
        """Whether browsers connect over HTTPS, so that cookies can require it."""
        return self.certificate is not None or self.behind_proxy

    @property
    def url(self) -> str:
        """The URL of the service."""
        if self.public_url is not None:
            return self.public_url
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.certificate else ''}://{host}:{self.port}"


_HOW_TO_CREATE = "Create one: head -c 32 /dev/urandom | base64 > server.key; chmod 600 server.key"


def read(
    document: object,
    *,
    base: Path,
    folder: Path,
    environment: Mapping[str, str],
    host: str | None = None,
    port: int | None = None,
    pg_port: int | None = None,
    make: bool = True,
) -> Settings:
    """Read the settings of a hubbub.yaml in `base`; `folder` is the folder of the ledger.

    If no secret is configured, one is created at the first start and stored in `folder`. With `make` false nothing is
    written, and a temporary secret is used (enough to check the file).
    """
    top = expect_mapping(document, "")
    given = dict(expect_mapping(top.get("server") or {}, "server"))
    check_keys(given, "server", KEYS["server"])
    for part in ("tls", "oidc", "postgres", "telemetry"):
        if part in given:
            given[part] = dict(expect_mapping(given[part], f"server.{part}"))
            check_keys(cast("dict[str, object]", given[part]), f"server.{part}", KEYS[f"server.{part}"])
    _resolve(given, base)
    _overlay(given, environment)
    given |= {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    if pg_port is not None:
        given["postgres"] = {**cast("dict[str, object]", given.get("postgres") or {}), "port": pg_port}
    tls = cast("dict[str, object]", given.get("tls") or {})
    certificate, key = (_path(tls.get(name), f"server.tls.{name}") for name in ("certificate", "key"))
    for path, name in ((certificate, "certificate"), (key, "key")):
        if path is not None:
            _file(path, f"server.tls.{name}", "HB425", private=name == "key")
    analysts = top.get("analysts") or {}
    secret, secret_path = _secret(given, environment, folder, make=make)
    return Settings(
        secret=secret,
        secret_path=secret_path,
        certificate=certificate,
        key=key,
        oidc=_oidc(given.get("oidc"), expect_mapping(analysts, "analysts")),
        postgres=postgres_settings.read(given.get("postgres")),
        telemetry=telemetry_settings.read(given.get("telemetry"), base),
        **_plain(given),
    )


def problems(text: str, base: Path) -> list[ConfigError]:
    """Return the problems in the `server:` section of a text; other sections are checked elsewhere."""
    try:
        document = expect_mapping(parse_yaml(text), "")
    except ConfigError:
        return []
    try:
        read(document, base=base, folder=base, environment={}, make=False)
    except ConfigError as error:
        return [error]
    return []


def _resolve(given: dict[str, object], base: Path) -> None:
    """Resolve relative paths against the folder of the file."""
    for holder, name in ((given, "secret_file"), *((given.get("tls") or {}, n) for n in ("certificate", "key"))):
        entries = cast("dict[str, object]", holder)
        value = entries.get(name)
        if isinstance(value, str) and value:
            entries[name] = str(base / value)


def _overlay(given: dict[str, object], environment: Mapping[str, str]) -> None:
    """Override settings of the file by environment variables, and reject unknown ones."""
    for variable, text in environment.items():
        if not variable.startswith("HUBBUB_") or variable in OTHER_VARIABLES:
            continue
        name = VARIABLES.get(variable)
        if name is None:
            near = get_close_matches(variable, [*VARIABLES, *OTHER_VARIABLES], 1)
            raise ConfigError(
                "HB424",
                f"Unknown environment variable {variable}.",
                f"Did you mean {near[0]}?" if near else "Remove it; docs/deploy.md lists all variables.",
            )
        value: object = text
        if name in _LISTS:
            value = [word.strip() for word in text.split(",") if word.strip()]
        elif name in _INTEGERS and re.fullmatch(r"\d{1,9}", text, re.ASCII):
            value = int(text)
        elif name in _TRUTHS and text in ("true", "false"):
            value = text == "true"
        part, _, key = name.rpartition(".")
        holder = cast("dict[str, object]", given.setdefault(part, {})) if part else given
        holder[key] = value


def _plain(given: Mapping[str, object]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    try:
        for name, (low, high) in _INTEGERS.items():
            if name in given:
                found[name] = numbers.integer(given[name], f"server.{name}", low, high)
        if "quantum" in given:
            quantum = cast(numbers.Number, given["quantum"])
            found["quantum"] = float(numbers.in_range(quantum, "server.quantum", Fraction(0), Fraction(60)))
    except ParameterError as error:
        raise ConfigError("HB420", error.message, error.remedy) from None
    if "host" in given:
        found["host"] = _text(given["host"], "server.host")
    if "behind_proxy" in given:
        if not isinstance(given["behind_proxy"], bool):
            reject("HB420", "server.behind_proxy", "is neither true nor false", "Use true or false.")
        found["behind_proxy"] = given["behind_proxy"]
    if "proxies" in given:
        found["proxies"] = tuple(_network(each) for each in _texts(given["proxies"], "server.proxies"))
    if "public_url" in given:
        found["public_url"] = _public(_text(given["public_url"], "server.public_url"))
    return found


def _oidc(value: object, analysts: Mapping[str, object]) -> OidcSettings | None:
    if value is None:
        return None
    given = expect_mapping(value, "server.oidc")
    for name in ("issuer", "audience"):
        if name not in given:
            reject("HB420", f"server.oidc.{name}", "is missing", "Set it as the issuer publishes it.")
    found: dict[str, Any] = {name: _text(given[name], f"server.oidc.{name}") for name in given.keys() - _ROLES}
    for role in given.keys() & _ROLES:
        found[role] = frozenset(_texts(given[role], f"server.oidc.{role}"))
        for name in sorted(found[role] & analysts.keys()):
            reject(
                "HB420", f"server.oidc.{role}", f"lists {name}, who is also an analyst", "Give each person one role."
            )
    return OidcSettings(**found)


def _secret(
    given: Mapping[str, object], environment: Mapping[str, str], folder: Path, *, make: bool
) -> tuple[bytes, Path | None]:
    """Find the secret, and the file that it is read from, if there is one."""
    direct = environment.get("HUBBUB_SECRET")
    path = _path(given.get("secret_file"), "server.secret_file")
    command = given.get("key_command")
    if direct is not None:
        if "HUBBUB_SECRET_FILE" in environment:
            raise ConfigError("HB422", "HUBBUB_SECRET and HUBBUB_SECRET_FILE are both set.", "Set only one of them.")
        return direct.strip().encode(), None
    if command is not None:
        words = _texts(command, "server.key_command")
        if path is not None:
            raise ConfigError(
                "HB422", "server.secret_file and server.key_command are both set.", "Set only one of them."
            )
        return (key_command.ask(words, environment) if make else _new_key()), None
    if path is None and (credentials := environment.get("CREDENTIALS_DIRECTORY")):
        credential = Path(credentials) / CREDENTIAL
        path = credential if credential.exists() else None
    if path is not None:
        return _file(path, "server.secret_file", "HB422", private=True).strip(), path
    if not make:
        return _new_key(), None
    return _created(folder / "server.key"), folder / "server.key"


def _new_key() -> bytes:
    """Make a key of printable characters: spaces at the ends of random bytes would be stripped."""
    return secrets.token_urlsafe(MIN_KEY).encode()


def _created(path: Path) -> bytes:
    """Create a secret at the first start; servers that start at the same time all use the first one."""
    if not path.exists():
        draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        try:
            create_folder(path.parent)
            handle = open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                os.write(handle, _new_key())
                os.fsync(handle)
            finally:
                os.close(handle)
            with suppress(FileExistsError):
                os.link(draft, path)
            draft.unlink()
        except OSError as error:
            raise ConfigError(
                "HB422",
                f"{path} cannot be written ({error.strerror}).",
                "Give this user write permission for the folder.",
            ) from error
    return _file(path, "The server secret", "HB422", private=True).strip()


def _file(path: Path, name: str, code: str, *, private: bool) -> bytes:
    """Read a required file; if it is private, check that no one else can read it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            facts = os.fstat(handle)
            content = os.read(handle, _MAX_FILE) if stat.S_ISREG(facts.st_mode) else b""
        finally:
            os.close(handle)
    except OSError as error:
        reject(
            code, name, f"is a file that cannot be read ({error.strerror}): {path}", "Check its path and permissions."
        )
    if private and facts.st_mode & 0o027:
        reject("HB423", name, f"is a file that other users can read or change: {path}", f"Run: chmod 600 {path}")
    if not content.strip():
        reject(code, name, f"is an empty or special file: {path}", "Set the path of the right file.")
    return content


def _path(value: object, name: str) -> Path | None:
    return None if value is None else Path(_text(value, name))


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        reject("HB420", name, "is not a string", "Put the value in quotes.")
    return value


def _texts(value: object, name: str) -> list[str]:
    if not isinstance(value, list):
        reject("HB420", name, "is not a list", "Use [one, two].")
    return [_text(each, name) for each in value]


def _network(value: str) -> str:
    try:
        return str(ip_network(value, strict=False)) if "/" in value else str(ip_address(value))
    except ValueError:
        reject(
            "HB420",
            "server.proxies",
            f"contains {value!r}, which is not an IP address or network",
            "Use a value such as 10.0.0.2 or 10.0.0.0/24.",
        )


def _public(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/") or parts.query:
        reject(
            "HB420", "server.public_url", "is not a URL without a path", "Use a value such as https://hubbub.example."
        )
    return f"{parts.scheme}://{parts.netloc}"


def safe_address(value: str) -> bool:
    """Return whether a URL is authentic: HTTPS, or this machine."""
    parts = urlsplit(value)
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and loopback(parts.hostname or ""))
    )
