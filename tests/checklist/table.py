"""Prints the constructs, one line each: number, done or open, name, tests (`make checklist`).

The tests are those that pytest collects with the marker `row(N)` and does not skip.
"""

import contextlib
import io
import sys

import pytest
from tests.checklist.rows import ROWS


class _Collector:
    """A pytest plugin that notes which test shows which row."""

    def __init__(self) -> None:
        self.tests: dict[int, set[str]] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            if item.get_closest_marker("skip") or item.get_closest_marker("xfail"):
                continue
            for marker in item.iter_markers("row"):
                for number in marker.args:
                    # a parametrised test counts once
                    self.tests.setdefault(number, set()).add(item.nodeid.split("[")[0])


def collect() -> dict[int, set[str]]:
    """Ask pytest which tests carry which row."""
    collector = _Collector()
    noise = io.StringIO()
    with contextlib.redirect_stdout(noise):
        code = pytest.main(
            ["--collect-only", "-q", "-p", "no:randomly", "-p", "no:xdist", "tests"], plugins=[collector]
        )
    if code != pytest.ExitCode.OK:
        sys.exit(f"the tests cannot be collected:\n{noise.getvalue()}")
    return collector.tests


def main() -> None:
    """Print the table."""
    tests = collect()
    for number, name in ROWS.items():
        found = sorted(tests.get(number, ()))
        print(f"{number:3d}  {'done' if found else 'open'}  {name:45s}  {' '.join(found)}".rstrip())


if __name__ == "__main__":
    main()
