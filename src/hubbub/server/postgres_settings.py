"""Settings of the port for PostgreSQL clients: the `server.postgres` section of hubbub.yaml.

Tested in tests/server/test_postgres_settings.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, cast

from hubbub.answers.statements import set_option
from hubbub.config.document import KEYS, check_keys, expect_mapping, reject
from hubbub.core import numbers
from hubbub.errors import ConfigError, ParameterError

_KINDS = (
    ("host", str, "the address to listen on, such as 127.0.0.1"),
    ("cleartext", bool, "true or false"),
    ("password", bool, "true or false"),
)

Defaults = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class PostgresSettings:
    """The port for PostgreSQL clients.

    host          the address to listen on; None: that of HTTP
    cleartext     accept connections without TLS from other machines
    password      ask for the token itself, over TLS only, so that tokens of an identity provider can be used
    connections   maximum number of connections of each server process
    analysts, applications  the default options of queries by analyst, and by `application_name`, which comes first
    """

    port: int
    host: str | None = None
    cleartext: bool = False
    password: bool = False
    connections: int = 256
    analysts: Defaults = field(default_factory=dict)
    applications: Defaults = field(default_factory=dict)

    def check(self, host: str, *, tls: bool) -> None:
        """Raise if the port would send tokens' proofs and answers unencrypted to other machines; `host` is HTTP's."""
        where = self.host or host
        if not (loopback(where) or tls or self.cleartext):
            reject(
                "HB421",
                "server.postgres",
                f"listens on {where}, which is reachable from other machines, but TLS is not configured",
                "Set `server: {tls: {certificate: …, key: …}}`; a proxy of HTTP does not cover this port. In a private"
                " network that you trust, set `postgres: {cleartext: true}`.",
            )
        if self.password and not tls:
            reject(
                "HB425",
                "server.postgres.password",
                "needs TLS, because it makes clients send their token",
                "Set `server: {tls: {certificate: …, key: …}}`, or remove `password`.",
            )

    def defaults(self, analyst: str, application: str) -> dict[str, Any]:
        """Return the options of queries that set none."""
        return {**self.analysts.get(analyst, {}), **self.applications.get(application, {})}


def loopback(host: str) -> bool:
    """Return whether an address is this machine's own."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read(value: object) -> PostgresSettings | None:
    """Read the section; None if there is none."""
    if value is None:
        return None
    given = expect_mapping(value, "server.postgres")
    if "port" not in given:
        reject("HB420", "server.postgres.port", "is missing", "Set the port, for example 5433.")
    chosen: dict[str, Any] = {}
    try:
        chosen["port"] = numbers.integer(given["port"], "server.postgres.port", 0, 65535)
        if "connections" in given:
            chosen["connections"] = numbers.integer(given["connections"], "server.postgres.connections", 1, 10_000)
    except ParameterError as error:
        raise ConfigError("HB420", error.message, error.remedy) from None
    for name, kind, what in _KINDS:
        if name in given:
            if not isinstance(given[name], kind) or given[name] == "":
                reject("HB420", f"server.postgres.{name}", f"is not {what}", f"Set {what}.")
            chosen[name] = given[name]
    for name in ("analysts", "applications"):
        chosen[name] = _defaults(given.get(name) or {}, f"server.postgres.{name}")
    return PostgresSettings(**chosen)


def _defaults(value: object, where: str) -> dict[str, dict[str, Any]]:
    read_all: dict[str, dict[str, Any]] = {}
    for name, options in expect_mapping(value, where).items():
        place = f"{where}.{name}"
        given = cast("Mapping[str, object]", expect_mapping(options, place))
        check_keys(given, place, KEYS[f"{where}.*"])
        chosen: dict[str, Any] = {}
        for key, setting in given.items():
            try:
                chosen = set_option(chosen, key, setting)
                if key == "epsilon":
                    numbers.epsilon(chosen[key])
            except ParameterError as error:
                reject("HB420", f"{place}.{key}", f"is not valid: {error.message.rstrip('.')}", error.remedy)
        read_all[str(name)] = chosen
    return read_all
