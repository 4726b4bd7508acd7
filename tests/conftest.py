"""Settings that hold for all tests, and what many share: words of a seed, one PostgreSQL, one Spark."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator

import mpmath
import pytest
from hypothesis import HealthCheck, settings
from tests.fixtures import spark
from tests.fixtures.postgres_server import postgres_dsn, postgres_server
from tests.fixtures.seeded_source import SeededSource

__all__ = ["postgres_dsn", "postgres_server"]

#: Marks that a test gets by a fixture that it uses; those of tests/campaigns are marked by their folder.
_MARKS = {"postgres_server": "postgres", "spark_address": "spark", "browser": "browser"}

#: Files whose tests kill processes, fit models or draw millions of samples: `make quick` leaves them out.
_SLOW = {
    "test_acs.py",
    "test_alike.py",
    "test_auto_bounds.py",
    "test_black_box.py",
    "test_choice.py",
    "test_contract.py",
    "test_crash.py",
    "test_decimals.py",
    "test_draws.py",
    "test_errors.py",
    "test_experiments.py",
    "test_functions.py",
    "test_health.py",
    "test_intervals.py",
    "test_key_weights.py",
    "test_learning.py",
    "test_middleware.py",
    "test_nightly.py",
    "test_null_groups.py",
    "test_operations.py",
    "test_page.py",
    "test_private_files.py",
    "test_progress.py",
    "test_replay.py",
    "test_rows.py",
    "test_sample_and_aggregate.py",
    "test_sandbox.py",
    "test_studies.py",
    "test_synthetic.py",
    "test_synthetic_served.py",
    "test_truncation.py",
    "test_value_bounds.py",
}

# anchors of ledgers in temporary folders: away from the user's own, and gone afterwards
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="hubbub-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

# Spark answers small questions in these tests: compiling them thoroughly takes longer than running them
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")

# on a busy machine an example may be slow without being wrong
settings.register_profile("hubbub", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hubbub")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by what it needs of the machine, so that `make quick` can leave it out; run campaigns first.

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
        if item.path.name in _SLOW:
            item.add_marker("slow")
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
