"""Settings that hold for all tests, and what many share: words of a seed, one PostgreSQL, one Spark."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import mpmath
import pytest
from hypothesis import HealthCheck, settings
from tests.fixtures import slow_tests, spark
from tests.fixtures.postgres_server import postgres_dsn, postgres_server
from tests.fixtures.seeded_source import SeededSource

__all__ = ["postgres_dsn", "postgres_server"]

_HERE = Path(__file__).parent

#: Marks that a test gets by a fixture that it uses; those of tests/campaigns are marked by their folder.
_MARKS = {"postgres_server": "postgres", "spark_address": "spark", "browser": "browser"}

# anchors of ledgers in temporary folders: away from the user's own, and gone afterwards
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="hubbub-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

# Spark answers small questions in these tests: compiling them thoroughly takes longer than running them
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")

# on a busy machine an example may be slow without being wrong
settings.register_profile("hubbub", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hubbub")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark each test by what it needs of the machine before `-m` selects, and run campaigns first.

    A campaign takes long: as the last test it would keep one worker busy while the others wait.
    """
    for item in items:
        for fixture in set(getattr(item, "fixturenames", ())) & _MARKS.keys():
            item.add_marker(_MARKS[fixture])
        parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
        if any(isinstance(value, str) and value == "postgres" for value in parameters):
            item.add_marker("postgres")
        if {"campaigns", "contract"} & set(item.path.parts):
            item.add_marker("campaign")
        below = item.path.relative_to(_HERE) if item.path.is_relative_to(_HERE) else Path()
        if below.as_posix() in slow_tests.FILES or (below.parts[:1] and below.parts[0] in slow_tests.FOLDERS):
            item.add_marker("slow")
    yield
    items.sort(key=lambda item: item.get_closest_marker("campaign") is None)


@pytest.fixture(autouse=True)
def _many_digits() -> None:
    """References are computed to 90 digits in every test, whatever ran before it."""
    mpmath.mp.dps = 90


@pytest.fixture
def seeded() -> Callable[[int], SeededSource]:
    return SeededSource


@pytest.fixture(scope="session")
def spark_address(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[str]:
    """The address of one Spark for all workers: the first that needs it starts it."""
    base = tmp_path_factory.getbasetemp()
    with spark.shared(base if worker_id == "master" else base.parent) as address:
        yield address
