"""The settings of a connection: those of PostgreSQL that clients set and read, and the options of queries.

Tested in tests/gateway/test_variables.py.
"""

from collections.abc import Mapping
from typing import Any

from hubbub.answers.statements import OPTION_NAMES, OptionParser, set_option, truth
from hubbub.core.numbers import brief
from hubbub.errors import ParameterError
from hubbub.gateway.catalog.contents import SERVER_VERSION

#: Settings with the values that they have at first; a client may set those that are not `_FIXED`.
_DEFAULTS: Mapping[str, str] = {
    "application_name": "",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "datestyle": "ISO, MDY",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "on",
    "extra_float_digits": "1",
    "idle_in_transaction_session_timeout": "0",
    "integer_datetimes": "on",
    "intervalstyle": "postgres",
    "is_superuser": "off",
    "jit": "off",
    "lc_collate": "C",
    "lc_ctype": "C",
    "lock_timeout": "0",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "row_security": "on",
    "search_path": "public",
    "server_encoding": "UTF8",
    "server_version": SERVER_VERSION,
    "server_version_num": "150000",
    "session_authorization": "",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "synchronize_seqscans": "on",
    "timezone": "UTC",
    "transaction_isolation": "read committed",
    "transaction_read_only": "on",
    "xmloption": "content",
}
_FIXED = frozenset(
    {"integer_datetimes", "is_superuser", "server_encoding", "server_version", "server_version_num"}
    | {"session_authorization", "max_identifier_length", "max_index_keys", "lc_collate", "lc_ctype"}
)
#: Settings whose values are announced to the client, as it spells them.
REPORTED: Mapping[str, str] = {
    "application_name": "application_name",
    "client_encoding": "client_encoding",
    "datestyle": "DateStyle",
    "default_transaction_read_only": "default_transaction_read_only",
    "in_hot_standby": "in_hot_standby",
    "integer_datetimes": "integer_datetimes",
    "intervalstyle": "IntervalStyle",
    "is_superuser": "is_superuser",
    "server_encoding": "server_encoding",
    "server_version": "server_version",
    "session_authorization": "session_authorization",
    "standard_conforming_strings": "standard_conforming_strings",
    "timezone": "TimeZone",
}
_ENCODINGS = frozenset({"utf8", "utf-8", "unicode", "sql_ascii", "'utf8'", ""})
_MAX_VALUE = 1000


def _request_key(value: Any, name: str) -> str:
    text = str(value)
    if not 1 <= len(text) <= 200 or not text.isascii() or not text.isprintable():
        raise ParameterError(
            "HB185", f"Invalid value for hubbub.{name}.", "Use 1 to 200 printable ASCII characters, such as a UUID."
        )
    return text


#: The options that queries have here besides those of DB-API.
MORE_OPTIONS: Mapping[str, OptionParser] = {"key": _request_key, "fresh": _request_key, "sandbox": truth}

#: The rows of pg_settings: psql completes `SET hubbub.` by them. What is set depends on the connection: see SHOW.
SETTINGS = [
    {"name": f"hubbub.{name}", "category": "hubbub", "context": "user", "vartype": "string"}
    for name in sorted((*OPTION_NAMES, *MORE_OPTIONS))
]


class Variables:
    """The settings of one connection."""

    def __init__(self, user: str) -> None:
        self._values = {**_DEFAULTS, "session_authorization": user, "in_hot_standby": "off"}
        self._first = dict(self._values)
        self.options: dict[str, Any] = {}
        self._first_options: dict[str, Any] = {}

    @property
    def application(self) -> str:
        """What the client calls itself."""
        return self._values["application_name"]

    @property
    def quiet(self) -> bool:
        """Whether the client wants no notices."""
        return self._values["client_min_messages"] in ("warning", "error", "log", "fatal", "panic")

    def start(self, name: str, value: str) -> None:
        """Set what the client stated at its start; what is not known is ignored, as many clients state more."""
        name = name.lower()
        if name.startswith("hubbub."):
            self.change(name, value)
            self._first_options = dict(self.options)
        elif name in _DEFAULTS and name not in _FIXED:
            self.change(name, value)
            self._first[name] = self._values[name]

    def change(self, name: str, value: str | None) -> tuple[str, str] | None:
        """Set a setting, or reset it; return what has to be announced."""
        name = name.lower()
        if name == "all":
            self._values, self.options = dict(self._first), dict(self._first_options)
            return None
        if name.startswith("hubbub."):
            self.options = set_option(self.options, name.removeprefix("hubbub."), value, more=MORE_OPTIONS)
            return None
        self._check(name, value)
        stored = self._first[name] if value is None else value
        # dates are always written in one style, and no value has a time zone
        stored = {"client_encoding": "UTF8", "datestyle": "ISO, MDY", "timezone": "UTC"}.get(name, stored)
        self._values[name] = stored[:_MAX_VALUE].lower() if name == "client_min_messages" else stored[:_MAX_VALUE]
        return (REPORTED[name], self._values[name]) if name in REPORTED else None

    @staticmethod
    def _check(name: str, value: str | None) -> None:
        if name in _FIXED:
            raise ParameterError("HB809", f"The setting {name} cannot be changed.", "Leave it as it is.")
        if name not in _DEFAULTS:
            raise ParameterError("HB185", f"There is no setting {name[:60]}.", "SHOW ALL lists the settings.")
        if name == "client_encoding" and (value or "").strip("'\"").lower() not in _ENCODINGS:
            raise ParameterError("HB809", "Only the client encoding UTF8 is supported.", "SET client_encoding = 'UTF8'")

    def get(self, name: str) -> str | None:
        """Return the value of a setting as text, or None if there is none."""
        name = name.lower()
        if name.startswith("hubbub."):
            value = self.options.get(name.removeprefix("hubbub."))
            if isinstance(value, bool):
                return "on" if value else "off"
            return "" if value is None else value if isinstance(value, str) else brief(value)
        return self._values.get(name)

    def listed(self) -> list[tuple[str, str]]:
        """Return all settings."""
        return sorted(self._values.items()) + [
            (f"hubbub.{name}", self.get(f"hubbub.{name}") or "") for name in sorted(self.options)
        ]

    def announced(self) -> list[tuple[str, str]]:
        """Return what a client is told at its start."""
        return [(spelled, self._values[name]) for name, spelled in REPORTED.items()]
