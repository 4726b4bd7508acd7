"""Repeat the few tests that failed, each alone: `python -m tests.repeat_failed STATUS`, with the exit code of pytest.

Draws repeat, so what fails because of its draws fails again (tests/fixtures/repeatable_draws.py). What passes three
times alone has failed because of what ran beside it: it is listed as unstable, and does not fail the run. More than
three failures, or a run that did not end, are never repeated.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

LIMIT = 3
TIMES = 3
_FAILED = Path(".pytest_cache/v/cache/lastfailed")
_TESTS_FAILED = 1  # pytest's exit code; others stand for interruptions, errors and missing tests


def passes(test: str) -> bool:
    """Run one test in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "--doctest-modules",
        "--doctest-glob=*.md",
        test,
    ]
    return subprocess.run(command, check=False).returncode == 0


def repeat(status: int, failed: Sequence[str], passes: Callable[[str], bool]) -> int:
    """Return the exit code of the whole run."""
    if status != _TESTS_FAILED or not 0 < len(failed) <= LIMIT:
        return status
    print(f"test: {len(failed)} failed; each is repeated {TIMES} times alone", flush=True)
    constant = [test for test in failed if not all(passes(test) for _ in range(TIMES))]
    for test in failed:
        print(f"test: {'FAILED again' if test in constant else 'UNSTABLE, passed alone'}: {test}", flush=True)
    return status if constant else 0


if __name__ == "__main__":
    names = list(json.loads(_FAILED.read_text())) if _FAILED.exists() else []
    sys.exit(repeat(int(sys.argv[1]), names, passes))
