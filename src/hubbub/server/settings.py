"""Settings of the server: the part `server:` of hubbub.yaml, then HUBBUB_* variables, then the command line.

What could leave the service open by a slip is refused: an address that others reach without TLS, a secret that others
can read, a variable that is spelled wrong (and would silently do nothing).
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
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from hubbub.accounting import policy_config as contract
from hubbub.accounting.policy_config import KEYS, refuse
from hubbub.core import numbers
from hubbub.errors import ConfigError, ParameterError
from hubbub.private_files import make_folder, open_private

#: Each variable with the key that it stands for; a dot leads into a part.
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
    "HUBBUB_OIDC_ISSUER": "oidc.issuer",
    "HUBBUB_OIDC_AUDIENCE": "oidc.audience",
    "HUBBUB_OIDC_CLAIM": "oidc.claim",
    "HUBBUB_OIDC_KEYS": "oidc.keys",
    "HUBBUB_OIDC_OWNERS": "oidc.owners",
    "HUBBUB_OIDC_AUDITORS": "oidc.auditors",
}
#: The secret itself, and variables that others read: the command line, the client, the tests.
OTHERS = frozenset(
    {"HUBBUB_SECRET", "HUBBUB_CONFIG", "HUBBUB_URL", "HUBBUB_TOKEN", "HUBBUB_TOKEN_FILE", "HUBBUB_CAMPAIGN"}
)

_LISTS = frozenset({"proxies", "oidc.owners", "oidc.auditors"})
_INTEGERS = {
    "port": (0, 65535),
    "workers": (1, 256),
    "queue": (0, 100_000),
    "per_minute": (1, 1_000_000),
    "free_workers": (2, 64),
    "free_seconds": (1, 600),
}
_ROLES = frozenset({"owners", "auditors"})
_SHORTEST = 32  # characters of a secret
_LONGEST = 65536  # bytes of a file with a secret


@dataclass(frozen=True)
class OidcSettings:
    """Whose tokens are accepted, and whom they name: the claim holds the name of an analyst in hubbub.yaml.

    `keys` is the address of the issuer's keys where they are not to be looked up; `owners` and `auditors` are the
    values of the claim that have these roles.
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
                refuse(
                    "HB420",
                    f"server.oidc.{name}",
                    "is not an https:// address",
                    "Keys that come over plain http could be anybody's. Write the address that the issuer publishes.",
                )
        if not self.audience or not self.claim:
            refuse("HB420", "server.oidc", "has an empty audience or claim", "Write both, as the issuer knows them.")
        both = sorted(self.owners & self.auditors)
        if both:
            refuse("HB420", "server.oidc", f"names {both[0]} as owner and as auditor", "Everybody has one role.")


@dataclass(frozen=True)
class Settings:
    """How the service is reached, and what it bounds."""

    secret: bytes = field(repr=False)
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

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            refuse("HB425", "server.tls", "has only one of certificate and key", "Name both files.")
        if not self.host or not re.fullmatch(r"[\w.:-]+", self.host, re.ASCII):
            refuse("HB420", "server.host", "is not an address", "Write 127.0.0.1, or the address to listen on.")
        if not (_loopback(self.host) or self.certificate or self.behind_proxy):
            refuse(
                "HB421",
                "server.host",
                f"is {self.host}, which others can reach, and there is no TLS",
                "Name `tls: {certificate: …, key: …}`; or write `behind_proxy: true` if a proxy on the way does TLS.",
            )
        if len(self.secret) < _SHORTEST:
            refuse("HB422", "the secret of the server", f"is shorter than {_SHORTEST} characters", _MAKE)

    @property
    def secure(self) -> bool:
        """Whether browsers come by https, so that cookies can insist on it."""
        return self.certificate is not None or self.behind_proxy

    @property
    def url(self) -> str:
        """Where the service is, as far as is known."""
        if self.public_url is not None:
            return self.public_url
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.certificate else ''}://{host}:{self.port}"


_MAKE = "Make one with: head -c 32 /dev/urandom | base64 > server.key; chmod 600 server.key"


def read(
    document: object,
    *,
    base: Path,
    folder: Path,
    environment: Mapping[str, str],
    host: str | None = None,
    port: int | None = None,
    make: bool = True,
) -> Settings:
    """Read the settings of a hubbub.yaml at `base`; what is kept beside the ledger is in `folder`.

    Without a secret of the owner's, one is drawn at the first start and kept in `folder`; with `make` false nothing is
    written, and a secret that lasts as long as the process stands in (enough to check the file).
    """
    top = contract.mapping(document, "")
    given = dict(contract.mapping(top.get("server") or {}, "server"))
    contract.known(given, "server", KEYS["server"])
    for part in ("tls", "oidc"):
        if part in given:
            given[part] = dict(contract.mapping(given[part], f"server.{part}"))
            contract.known(cast("dict[str, object]", given[part]), f"server.{part}", KEYS[f"server.{part}"])
    _resolve(given, base)
    _overlay(given, environment)
    given |= {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    tls = cast("dict[str, object]", given.get("tls") or {})
    certificate, key = (_path(tls.get(name), f"server.tls.{name}") for name in ("certificate", "key"))
    for path, name in ((certificate, "certificate"), (key, "key")):
        if path is not None:
            _file(path, f"server.tls.{name}", "HB425", private=name == "key")
    analysts = top.get("analysts") or {}
    return Settings(
        secret=_secret(given, environment, folder, make=make),
        certificate=certificate,
        key=key,
        oidc=_oidc(given.get("oidc"), contract.mapping(analysts, "analysts")),
        **_plain(given),
    )


def problems(text: str, base: Path) -> list[ConfigError]:
    """Say what is wrong with the server's part of a text; of the rest, others say it."""
    try:
        document = contract.mapping(contract.load(text), "")
    except ConfigError:
        return []
    try:
        read(document, base=base, folder=base, environment={}, make=False)
    except ConfigError as error:
        return [error]
    return []


def _resolve(given: dict[str, object], base: Path) -> None:
    """Make paths of the file relative to it."""
    for holder, name in ((given, "secret_file"), *((given.get("tls") or {}, n) for n in ("certificate", "key"))):
        entries = cast("dict[str, object]", holder)
        value = entries.get(name)
        if isinstance(value, str) and value:
            entries[name] = str(base / value)


def _overlay(given: dict[str, object], environment: Mapping[str, str]) -> None:
    """Put what the environment says over what the file says, and refuse what nobody reads."""
    for variable, text in environment.items():
        if not variable.startswith("HUBBUB_") or variable in OTHERS:
            continue
        name = VARIABLES.get(variable)
        if name is None:
            near = get_close_matches(variable, [*VARIABLES, *OTHERS], 1)
            raise ConfigError(
                "HB424",
                f"the environment has {variable}, which nothing reads.",
                f"Did you mean {near[0]}?" if near else "Remove it, or see docs/deploy.md for those that exist.",
            )
        value: object = text
        if name in _LISTS:
            value = [word.strip() for word in text.split(",") if word.strip()]
        elif name in _INTEGERS and re.fullmatch(r"\d{1,9}", text, re.ASCII):
            value = int(text)
        elif name == "behind_proxy" and text in ("true", "false"):
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
            refuse("HB420", "server.behind_proxy", "is neither true nor false", "Write true or false.")
        found["behind_proxy"] = given["behind_proxy"]
    if "proxies" in given:
        found["proxies"] = tuple(_network(each) for each in _texts(given["proxies"], "server.proxies"))
    if "public_url" in given:
        found["public_url"] = _public(_text(given["public_url"], "server.public_url"))
    return found


def _oidc(value: object, analysts: Mapping[str, object]) -> OidcSettings | None:
    if value is None:
        return None
    given = contract.mapping(value, "server.oidc")
    for name in ("issuer", "audience"):
        if name not in given:
            refuse("HB420", f"server.oidc.{name}", "is missing", "Write it as the issuer publishes it.")
    found: dict[str, Any] = {name: _text(given[name], f"server.oidc.{name}") for name in given.keys() - _ROLES}
    for role in given.keys() & _ROLES:
        found[role] = frozenset(_texts(given[role], f"server.oidc.{role}"))
        for name in sorted(found[role] & analysts.keys()):
            refuse("HB420", f"server.oidc.{role}", f"has {name}, who is an analyst", "Everybody has one role.")
    return OidcSettings(**found)


def _secret(given: Mapping[str, object], environment: Mapping[str, str], folder: Path, *, make: bool) -> bytes:
    direct = environment.get("HUBBUB_SECRET")
    path = _path(given.get("secret_file"), "server.secret_file")
    if direct is not None:
        if "HUBBUB_SECRET_FILE" in environment:
            raise ConfigError("HB422", "HUBBUB_SECRET and HUBBUB_SECRET_FILE are both set.", "Keep one of them.")
        return direct.strip().encode()
    if path is not None:
        return _file(path, "server.secret_file", "HB422", private=True).strip()
    if not make:
        return secrets.token_bytes(_SHORTEST)
    return _drawn(folder / "server.key")


def _drawn(path: Path) -> bytes:
    """Draw a secret at the first start; of several servers that start at once, all take that of the first."""
    if not path.exists():
        draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        try:
            make_folder(path.parent)
            handle = open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                os.write(handle, secrets.token_urlsafe(_SHORTEST).encode())
                os.fsync(handle)
            finally:
                os.close(handle)
            with suppress(FileExistsError):
                os.link(draft, path)
            draft.unlink()
        except OSError as error:
            raise ConfigError(
                "HB422", f"{path} cannot be written ({error.strerror}).", "Give this user the right to write there."
            ) from error
    return _file(path, "the secret of the server", "HB422", private=True).strip()


def _file(path: Path, name: str, code: str, *, private: bool) -> bytes:
    """Read a file that must be there, and that nobody else may read if it is private."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            facts = os.fstat(handle)
            content = os.read(handle, _LONGEST) if stat.S_ISREG(facts.st_mode) else b""
        finally:
            os.close(handle)
    except OSError as error:
        refuse(
            code, name, f"is a file that cannot be read ({error.strerror}): {path}", "Check the path and the rights."
        )
    if private and facts.st_mode & 0o027:
        refuse("HB423", name, f"is a file that others can read or change: {path}", f"Run: chmod 600 {path}")
    if not content.strip():
        refuse(code, name, f"is not a file with anything in it: {path}", "Name the right file.")
    return content


def _path(value: object, name: str) -> Path | None:
    return None if value is None else Path(_text(value, name))


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        refuse("HB420", name, "is not text", "Write it in quotes.")
    return value


def _texts(value: object, name: str) -> list[str]:
    if not isinstance(value, list):
        refuse("HB420", name, "is not a list", "Write [one, two].")
    return [_text(each, name) for each in value]


def _network(value: str) -> str:
    try:
        return str(ip_network(value, strict=False)) if "/" in value else str(ip_address(value))
    except ValueError:
        refuse(
            "HB420", "server.proxies", f"has {value!r}, which is no address", "Write such as 10.0.0.2 or 10.0.0.0/24."
        )


def _public(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/") or parts.query:
        refuse(
            "HB420", "server.public_url", "is not an address without a path", "Write such as https://hubbub.example."
        )
    return f"{parts.scheme}://{parts.netloc}"


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def safe_address(value: str) -> bool:
    """Say whether what comes from there is what its owner sent: https, or this machine."""
    parts = urlsplit(value)
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and _loopback(parts.hostname or ""))
    )
