"""Settings of the port for PostgreSQL clients."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from hubbub.errors import ConfigError
from hubbub.server import settings as settings_
from hubbub.server.postgres_settings import PostgresSettings, read
from hubbub.server.settings import Settings


def test_the_section_is_read() -> None:
    document = {"port": 5433, "analysts": {"ana": {"epsilon": "0.1"}}, "applications": {"Tableau": {"within": "5%"}}}
    settings = read(document)
    assert settings is not None
    assert (settings.port, settings.connections, settings.password) == (5433, 256, False)
    assert settings.defaults("ana", "psql") == {"epsilon": Fraction(1, 10)}
    assert settings.defaults("ben", "Tableau") == {"within": "5%"}
    assert read(None) is None


@pytest.mark.parametrize(
    "section",
    [
        {},
        {"port": "5433"},
        {"port": 70000},
        {"port": 1, "nothing": 1},
        {"port": 1, "host": ""},
        {"port": 1, "cleartext": "yes"},
        {"port": 1, "connections": 0},
        {"port": 1, "analysts": {"ana": {"epsilon": -1}}},
        {"port": 1, "analysts": {"ana": {"key": "x"}}},
    ],
)
def test_mistakes_are_told(section: Any) -> None:
    with pytest.raises(ConfigError, match="HB4"):
        settings_.read({"server": {"postgres": section}}, base=Path(), folder=Path(), environment={}, make=False)


def settings(postgres: PostgresSettings, **changes: Any) -> Settings:
    return Settings(secret=b"s" * 32, postgres=postgres, **changes)


def test_a_public_address_needs_tls_or_consent() -> None:
    with pytest.raises(ConfigError, match="HB421"):
        settings(PostgresSettings(5433, host="0.0.0.0"))
    with pytest.raises(ConfigError, match="HB421"):  # a proxy of HTTP does not encrypt this port
        settings(PostgresSettings(5433), host="0.0.0.0", behind_proxy=True)
    settings(PostgresSettings(5433, host="0.0.0.0", cleartext=True))
    settings(PostgresSettings(5433, host="0.0.0.0"), certificate=Path("c"), key=Path("k"))


def test_passwords_are_asked_for_over_tls_only() -> None:
    with pytest.raises(ConfigError, match="HB425"):
        settings(PostgresSettings(5433, password=True))
    settings(PostgresSettings(5433, password=True), certificate=Path("c"), key=Path("k"))
