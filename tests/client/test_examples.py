"""The examples in other languages run against a server, if the language is installed."""

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


def _r_has_httr2() -> bool:
    if shutil.which("Rscript") is None:
        return False
    return (
        subprocess.run(
            ["Rscript", "-e", "library(httr2); library(jsonlite)"], capture_output=True, check=False
        ).returncode
        == 0
    )


def test_r_names_the_routes_that_exist() -> None:
    code = re.sub(r"#.*", "", (EXAMPLES / "query.R").read_text())
    for opening, closing in ("()", "{}", "[]"):
        assert code.count(opening) == code.count(closing)
    assert re.findall(r'hubbub_call\("(\w+)"', code) == ["estimate", "query"]


def test_r_estimates_asks_and_is_refused(start_served: Starter) -> None:  # noqa: F811
    if not _r_has_httr2():
        pytest.skip("R with httr2 is not installed here, so the example is only read")
    world = start_served()
    script = f"""
        source("{EXAMPLES / "query.R"}")
        sql <- "SELECT year, COUNT(*) AS n FROM health GROUP BY year ORDER BY year"
        cat(hubbub_estimate(sql, "0.5")$epsilon, "\\n")
        first <- hubbub_query(sql, "0.5")
        stopifnot(identical(names(first), c("year", "n", "n_low", "n_high")), identical(first$year, 1:5))
        stopifnot(all(first$n_low <= first$n), all(first$n <= first$n_high))
        stopifnot(identical(first$n, hubbub_query(sql, "0.5")$n), attr(first, "receipt")$epsilon == "1/2")
        tryCatch(hubbub_query("DROP TABLE health", "0.5"), error = function(e) cat(conditionMessage(e)))
    """
    done = subprocess.run(
        ["Rscript", "-e", script],
        env={"HUBBUB_URL": world.url, "HUBBUB_TOKEN": world.tokens["ana"], "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1/2")
    assert "HB502" in done.stdout
    assert world.spent()["health"] == "1/2"
