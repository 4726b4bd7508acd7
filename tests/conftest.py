"""Settings that hold for all tests, and what many share: words of a seed, and one Spark."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator

import mpmath
import pytest
from hypothesis import HealthCheck, settings
from tests.campaigns.rig import spark
from tests.campaigns.rig.words import Seeded

# anchors of ledgers in temporary folders: away from the user's own, and gone afterwards
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="hubbub-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

# on a busy machine an example may be slow without being wrong
settings.register_profile("hubbub", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hubbub")


@pytest.fixture(autouse=True)
def _many_digits() -> None:
    """References are computed to 90 digits in every test, whatever ran before it."""
    mpmath.mp.dps = 90


@pytest.fixture
def seeded() -> Callable[[int], Seeded]:
    return Seeded


@pytest.fixture(scope="session")
def spark_address(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[str]:
    """The address of one Spark for all workers: the first that needs it starts it."""
    base = tmp_path_factory.getbasetemp()
    with spark.shared(base if worker_id == "master" else base.parent) as address:
        yield address
