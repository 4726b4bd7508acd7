"""The examples in other languages: JavaScript runs against a server, R is read as far as that is possible here."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.server.conftest import Starter, start_served  # noqa: F401 - a fixture

EXAMPLES = Path(__file__).parents[2] / "packaging" / "examples"


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed here")
def test_javascript_estimates_asks_and_is_refused(start_served: Starter) -> None:  # noqa: F811
    world = start_served()
    sql = "SELECT year, COUNT(*) AS n FROM health GROUP BY year ORDER BY year"

    def run(sql: str, epsilon: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["node", str(EXAMPLES / "query.mjs"), sql, epsilon],
            env={"HUBBUB_URL": world.url, "HUBBUB_TOKEN": world.tokens["ana"], "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    done = run(sql, "0.5")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("n will be ±")
    assert all(re.fullmatch(r"year = \d, n = \d+ \([\d.]+ to [\d.]+\)", line) for line in lines[1:6])
    assert lines[6] == "left: ε = 19/2"
    assert run(sql, "0.5").stdout.splitlines()[1:6] == lines[1:6]
    assert world.spent()["health"] == "1/2"
    refused = run("DROP TABLE health", "0.5")
    assert refused.returncode == 1
    assert refused.stderr.startswith("HB502")


def test_r_is_balanced_and_asks_the_routes_that_exist() -> None:
    code = re.sub(r"#.*", "", (EXAMPLES / "query.R").read_text())
    for opening, closing in ("()", "{}", "[]"):
        assert code.count(opening) == code.count(closing)
    assert re.findall(r'hubbub_call\("(\w+)"', code) == ["estimate", "query"]
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed here, so the example is only read")
    subprocess.run(["Rscript", "-e", f'parse("{EXAMPLES / "query.R"}")'], check=True, timeout=60)
