"""Settings that hold for all tests, and what many share: words of a seed, one PostgreSQL, one Spark."""

import atexit
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import mpmath
import pytest
from hypothesis import HealthCheck, settings
from tests.fixtures import slow_tests, spark
from tests.fixtures.collection import QuickCollection, spread
from tests.fixtures.postgres_server import postgres_dsn, postgres_server
from tests.fixtures.repeatable_draws import RepeatableDraws, chosen_seed
from tests.fixtures.seeded_source import SeededSource

from hubbub.analyses.statistics import null
from hubbub.sql import owner_truncation

__all__ = ["postgres_dsn", "postgres_server"]

_HERE = Path(__file__).parent

#: Marks that a test gets by a fixture that it uses; those of tests/campaigns are marked by their folder.
_MARKS = {"postgres_server": "postgres", "spark_address": "spark", "browser": "browser"}

#: Files with tests that fork their process. Other tests cannot: once libraries with threads of their own are loaded, a
#: forked child crashes now and then.
_FORKING = frozenset(
    f"test_{name}.py"
    for name in (
        *("lag", "ledger", "sqlite", "postgres", "nightly", "audit", "planted_table", "state", "source"),
        "sparse_vector",
    )
)

_FORK = os.fork
_UMASK = 0o022

# anchors of ledgers in temporary folders: away from the user's own, and gone afterwards
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="hubbub-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

# seeds of charges too: those that crashed tests left in the user's own folder would be looked at by every session
_MEMORY = Path("/dev/shm")
if _MEMORY.is_dir():
    os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="hubbub-run-", dir=_MEMORY)
    atexit.register(shutil.rmtree, os.environ["XDG_RUNTIME_DIR"], ignore_errors=True)

# Spark answers small questions in these tests: compiling them thoroughly takes longer than running them
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")

# gRPC, by which Spark is asked, would otherwise do work of its own in every forked child, and may crash it
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

#: Noise, examples and the order of tests are the same in each run, unless HUBBUB_SEED says otherwise.
_DRAWS = RepeatableDraws(chosen_seed())

# on a busy machine an example may be slow without being wrong
settings.register_profile(
    "hubbub", deadline=None, derandomize=_DRAWS.seed is not None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("hubbub")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Make draws repeatable and collection quick, and let Ctrl-C stop the servers that tests start.

    What is started in the background of a shell ignores SIGINT, and so would every process that it starts.
    """
    _DRAWS.install()
    if _DRAWS.seed is not None and getattr(config.option, "randomly_seed", None) == "default":
        config.option.randomly_seed = _DRAWS.seed
    config.pluginmanager.register(QuickCollection())
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark each test by what it needs of the machine before `-m` selects; forks, campaigns and Spark come first.

    Those that fork come before libraries with threads of their own are loaded. The others take long: as the last test,
    one would keep a worker busy while the others wait. Each worker gets its share, but one gets all of Spark.
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
    items.sort(key=lambda item: [item.path.name not in _FORKING, _unmarked(item, "campaign"), _unmarked(item, "spark")])
    first = [item for item in items if item.path.name in _FORKING or not _unmarked(item, "campaign")]
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    items[:] = spread(first, items[len(first) :], workers)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin the draws, let only tests fork that run before such libraries are loaded, and reset the umask."""
    _DRAWS.begin(item.nodeid)
    os.fork = _FORK if item.path.name in _FORKING else _refuse_to_fork
    os.umask(_UMASK)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest) -> Iterator[None]:
    """Let what tests share not depend on which of them comes first."""
    if fixturedef.scope == "function":
        return (yield)
    with _DRAWS.apart(f"{fixturedef.baseid}::{fixturedef.argname} {getattr(request, 'param_index', 0)}"):
        return (yield)


def _refuse_to_fork() -> int:
    raise AssertionError("Start a process of its own, or add the file to `_FORKING` in tests/conftest.py.")


def _unmarked(item: pytest.Item, mark: str) -> bool:
    return item.get_closest_marker(mark) is None


@pytest.fixture(autouse=True)
def _many_digits() -> None:
    """References are computed to 90 digits in every test, whatever ran before it."""
    mpmath.mp.dps = 90


@pytest.fixture
def system_randomness() -> Iterator[None]:
    """Let a test draw from the operating system, as the product does."""
    with _DRAWS.paused():
        yield


@pytest.fixture
def seeded() -> Callable[[int], SeededSource]:
    return SeededSource


@pytest.fixture
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Truncate rows of two owners in as many rounds as they need, not at least 128: for enumerations of small data.

    The outcome is the same (`test_rounds_keep_what_one_row_after_another_keeps` has both), ten times as fast.
    p-values, which are computed after all noise is drawn, are simulated with few draws.
    """
    monkeypatch.setattr(owner_truncation, "_ROUNDS", 4)
    monkeypatch.setattr(null, "DRAWS", 9)


@pytest.fixture(scope="session")
def spark_address(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[str]:
    """The address of one Spark for all workers: the first that needs it starts it."""
    base = tmp_path_factory.getbasetemp()
    with spark.shared(base if worker_id == "master" else base.parent) as address:
        yield address
