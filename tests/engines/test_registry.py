"""Every engine has one entry, whose parts can be imported and agree with each other."""

import pytest

from hubbub.engines.base import DataSource, Engine
from hubbub.engines.registry import ENGINES, EngineEntry, engine_named, engine_of_form

ENTRIES = pytest.mark.parametrize("entry", ENGINES, ids=lambda entry: entry.name)


@ENTRIES
def test_the_connection_has_the_methods_of_an_engine(entry: EngineEntry) -> None:
    connection = entry.load_connection()
    assert connection.dialect == entry.name
    for name in ("run", "fingerprint", "interrupt", "close"):
        assert callable(getattr(connection, name))
        assert hasattr(Engine, name)


@ENTRIES
def test_the_dialect_and_the_schema_reader_belong_to_the_engine(entry: EngineEntry) -> None:
    assert entry.load_dialect().name == entry.name
    assert entry.load_schema_reader().__module__.startswith(f"hubbub.engines.{entry.name}.")


def test_every_form_of_source_has_exactly_one_engine() -> None:
    forms = [form for entry in ENGINES for form in entry.forms]
    assert len(forms) == len(set(forms))
    annotation = DataSource.__annotations__["form"]
    assert set(annotation.__args__) == set(forms)
    assert all(engine_named(entry.name) is entry for entry in ENGINES)
    assert all(form in engine_of_form(form).forms for form in forms)
