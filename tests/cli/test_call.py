"""`hubbub call`: list the analyses, describe one, plan it and run it."""

import re

import pytest
from tests.cli.test_cli import Run, folder, run

from hubbub.analyses.registry import ANALYSES

__all__ = ["folder", "run"]

MOMENTS = ("call", "moments", "table=visits", "columns=age")


def test_without_a_name_all_analyses_are_listed(run: Run) -> None:
    code, out, _ = run("call")
    assert code == 0
    assert set(ANALYSES) <= {line.split()[0] for line in out.splitlines() if line.strip()}


def test_without_an_epsilon_an_analysis_is_described(run: Run) -> None:
    code, out, _ = run("call", "kmeans")
    assert code == 0
    assert "columns" in out
    assert "hubbub call kmeans table=" in out
    assert "docs/theorems.md" in out
    assert "Proof" not in out


def test_an_analysis_is_planned_for_free_and_then_run(run: Run) -> None:
    code, out, _ = run(*MOMENTS, "-e", "1", "--plan")
    assert code == 0
    assert "this estimate is free" in out
    code, out, _ = run(*MOMENTS, "-e", "1")
    assert code == 0
    left = re.search(r"ε = 1(?:, δ = \S+)?; ε = ([\d.]+) remaining", " ".join(out.split()))
    assert left is not None
    assert 1.5 < float(left[1]) < 3  # Gaussian noise has no pure ε: what fits beside it is decided by another filter


def test_an_unknown_analysis_or_argument_is_refused(run: Run) -> None:
    assert run("call", "nothing")[2].startswith("HB582")
    assert run("call", "moments", "8", "-e", "1")[2].startswith("HB148")


def test_lists_are_read_as_json_and_a_list_that_the_shell_unquoted_says_so(run: Run) -> None:
    for columns in ('["age"]', "['age']", '[{"column": "age", "bins": 4}]'):
        code, out, err = run("call", "tabulate", "table=visits", f"columns={columns}", "-e", "1", "--plan")
        assert (code, "this estimate is free" in out) == (0, True), err
    refused = run("call", "tabulate", "table=visits", "columns=[age]", "-e", "1", "--plan")[2]
    assert refused.startswith("HB581")
    assert refused.count("Nothing was run") == 1
    assert "Quote the whole argument" in refused


def test_arguments_of_the_analysis_may_follow_options(run: Run) -> None:
    code, out, _ = run("call", "moments", "table=visits", "-e", "1", "columns=age", "--plan")
    assert code == 0
    assert "this estimate is free" in out
    with pytest.raises(SystemExit):
        run("call", "moments", "table=visits", "-e", "1", "--columns=age")
    with pytest.raises(SystemExit):
        run("check", "columns=age", "unknown=1", "--all=1")
