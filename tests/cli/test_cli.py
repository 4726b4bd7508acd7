"""The command line, as owners, analysts and auditors use it: output, exit codes, and Ctrl-C."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
import yaml

from hubbub.cli import COMMANDS, main

Run = Callable[..., tuple[int, str, str]]
COUNT = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: {column: patient, groups: 2, rows: 3}
    columns:
      patient: {}
      region: {values: [North, South]}
      age: {type: integer, bounds: [0, 110]}
      notes: {hidden: true}
    budget: {epsilon: 3, delta: 1e-6, per_query: 2}
analysts:
  ana: {visits: {epsilon: 3}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = "".join(f"p{i % 80},{('North', 'South')[i % 2]},{20 + i % 50},CANARY-7431,\n" for i in range(400))
    (tmp_path / "visits.csv").write_text(f"patient,region,age,notes,extra\n{rows}")
    (tmp_path / "hubbub.yaml").write_text(YAML)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def runner(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        out, err = capsys.readouterr()
        assert "CANARY" not in out + err
        assert "Traceback" not in err
        return code, out, err

    return runner


def test_help_teaches_the_three_roles(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    for word in ("owner:", "analyst:", "auditor:", "hubbub init", "hubbub query", "hubbub verify", "hubbub demo"):
        assert word in text


#: What takes long to import, and parts of hubbub that import it.
HEAVY = ("duckdb", "jax", "matplotlib", "numpy", "pandas", "psycopg", "pyarrow", "scipy", "sqlglot", "yaml")


def imported(program: str) -> set[str]:
    """Run a program, and return what it imported."""
    listed = "import sys, atexit; atexit.register(lambda: print(chr(10) + ' '.join(sys.modules)));"
    found = subprocess.run([sys.executable, "-c", listed + program], capture_output=True, text=True, check=True)
    return set(found.stdout.splitlines()[-1].split())


def test_help_imports_no_command() -> None:
    """So `hubbub --help` is quick: everything else is loaded only by the commands that use it."""
    modules = imported("from hubbub.cli import main; main(['--help'])")
    assert "hubbub.cli" in modules
    assert modules & {*HEAVY, "httpx2", "rich"} == set()
    assert {name.removeprefix("hubbub.cli.") for name in modules} & set(COMMANDS) == set()
    assert {name for name in modules if name.startswith("hubbub.")} == {"hubbub.cli", "hubbub.errors"}


def test_the_package_imports_nothing_but_its_errors() -> None:
    modules = imported("import hubbub")
    assert {name for name in modules if name.startswith("hubbub.")} == {"hubbub.errors"}
    assert "hubbub.answers.release" in imported("from hubbub import Release")


def test_the_client_imports_no_engine_and_no_numbers() -> None:
    modules = imported("import hubbub.client.session, hubbub.client.async_session, hubbub.dbapi")
    assert modules & set(HEAVY) == set()
    assert [name for name in modules if name.startswith(("hubbub.curator", "hubbub.sql", "hubbub.accounting"))] == []


def test_a_command_imports_either_the_curator_or_the_client() -> None:
    """A local query needs no HTTP client; a query to a server needs no engine."""
    asks = "from hubbub.cli import main; main(['query', 'SELECT 1', '-e', '1', *{}])"
    local = imported(asks.format(["--config", "/nowhere/hubbub.yaml"]))
    remote = imported("import os; os.environ['HUBBUB_TOKEN'] = 'x';" + asks.format(["--server", "http://127.0.0.1:9"]))
    assert ("hubbub.curator" in local, "httpx2" in local) == (True, False)
    assert ("hubbub.curator" in remote, "httpx2" in remote) == (False, True)
    assert remote & set(HEAVY) == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    assert f"hubbub {command}" in capsys.readouterr().out.partition("example")[2]


@pytest.mark.parametrize("action", ["export", "import", "migrate", "rotate-key"])
def test_help_of_one_paragraph_is_wrapped(
    action: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["admin", action, "--help"])
    said, _, examples = capsys.readouterr().out.partition("\nexamples:\n")
    assert max(map(len, said.splitlines())) <= 80
    assert examples.splitlines()[0].startswith(f"  hubbub admin {action}")


def test_init_writes_a_file_that_check_explains(run: Run, folder: Path) -> None:
    code, out, _ = run("init", "visits.csv", "--output", "new.yaml")
    assert code == 0
    assert "no values were read" in out
    code, out, _ = run("check", "-c", "new.yaml")
    assert code == 1
    assert "datasets.visits.unit is missing: it defines who is protected" in " ".join(out.split())
    assert "still blank" in out


def test_init_replaces_a_file_only_with_force(run: Run, folder: Path) -> None:
    before = (folder / "hubbub.yaml").read_text()
    code, _, err = run("init", "visits.csv")
    assert code == 1
    assert "--force" in err
    assert (folder / "hubbub.yaml").read_text() == before
    assert run("init", "visits.csv", "--force")[0] == 0


@pytest.mark.parametrize("source", ["visits", "visits/", "hive:visits"])
def test_init_and_check_know_folders_of_parquet_files(run: Run, folder: Path, source: str) -> None:
    for month in ("2026-01", "2026-02"):
        path = folder / "visits" / f"month={month}"
        path.mkdir(parents=True)
        duckdb.sql(f"COPY (SELECT 'p1' AS person, 3 AS cost) TO '{path / '0.parquet'}'")
    assert run("init", source, "--output", "new.yaml")[0] == 0
    text = (folder / "new.yaml").read_text()
    assert f"source: {'visits/' if source == 'visits' else source}" in text.replace('"', "")
    assert [line.split(":")[0].strip() for line in text.splitlines() if "type: text" in line] == ["month"]
    (folder / "checked.yaml").write_text(
        "version: 1\ndatasets:\n  visits:\n    source: visits/\n    unit: row\n    budget: {epsilon: 1}\n"
        "    columns: {month: {bounds: [2026-01-01, 2026-12-31]}, cost: {bounds: [0, 9]}}\n"
    )
    code, out, _ = run("check", "-c", "checked.yaml")
    assert code == 0
    assert "month" in out
    (folder / "visits" / "month=soon").mkdir()
    duckdb.sql(f"COPY (SELECT 'p1' AS person, 3 AS cost) TO '{folder / 'visits' / 'month=soon' / '0.parquet'}'")
    assert "1 of the names of its 3 folders cannot be read as date" in " ".join(
        run("check", "-c", "checked.yaml")[1].split()
    )


def test_init_reads_values_only_with_guess(run: Run, folder: Path) -> None:
    run("init", "visits.csv", "--output", "blind.yaml")
    assert "age:      {type: text, values: }" in (folder / "blind.yaml").read_text()
    _, out, _ = run("init", "visits.csv", "--output", "guessed.yaml", "--guess")
    assert "guessed from values" in out
    assert "age:      {type: integer, bounds: auto}" in (folder / "guessed.yaml").read_text()


def test_init_of_a_database_needs_a_table(run: Run, folder: Path) -> None:
    with duckdb.connect(str(folder / "x.duckdb")) as made:
        made.execute("CREATE TABLE stays (id INT)")
    assert run("init", "x.duckdb", "--output", "a.yaml")[0] == 1
    assert run("init", "x.duckdb#stays", "--output", "a.yaml")[0] == 0
    assert yaml.safe_load((folder / "a.yaml").read_text())["datasets"]["stays"]["source"] == "x.duckdb#stays"
    assert run("init", "duckdb:x.duckdb#stays", "--output", "b.yaml")[0] == 0


def test_a_path_is_written_relative_to_the_file_that_names_it(run: Run, folder: Path) -> None:
    (folder / "config").mkdir()
    assert run("init", "visits.csv", "--output", "config/hubbub.yaml")[0] == 0
    written = yaml.safe_load((folder / "config" / "hubbub.yaml").read_text())
    assert written["datasets"]["visits"]["source"] == "../visits.csv"


def test_check_summarizes_the_guarantees(run: Run) -> None:
    code, out, _ = run("check")
    assert code == 0
    words = " ".join(out.split())
    assert "each patient with all of its rows; a query uses at most 3 rows in each of 2 groups" in words
    # with δ: e^(1.1 · 3)/(1 + e^(1.1 · 3)) = 96.44%, except with probability 1e-6/(1 − e^(−0.3)) = 3.858e-6
    assert "96.5%, except with probability 3.86e-06" in words
    assert "notes (hidden)" in words
    assert "extra (not listed under columns)" in words


def test_check_prints_a_json_schema(run: Run) -> None:
    code, out, _ = run("check", "--schema")
    assert code == 0
    assert json.loads(out)["title"] == "hubbub.yaml"


def test_plan_costs_nothing_and_says_why(run: Run, folder: Path) -> None:
    code, out, _ = run("plan", COUNT, "--epsilon", "0.5", "--sql")
    assert code == 0
    assert "this estimate is free" in out
    assert "L1 sensitivity 6" in " ".join(out.split())
    assert "SELECT" in out
    assert "Spent" in run("budget")[1]
    assert json.loads(run("budget", "--json")[1])[0]["caps"][1]["spent"] == "0"


def test_a_plan_that_would_be_refused_exits_with_one(run: Run) -> None:
    code, out, _ = run("plan", COUNT, "--epsilon", "2.5")
    assert code == 1
    assert "over budget" in out


def test_query_shows_the_answer_its_error_and_its_price(run: Run) -> None:
    code, out, _ = run("query", COUNT, "--epsilon", "1")
    assert code == 0
    assert re.search(r"North +\d+ ±\d+", out)
    assert "ε = 1; ε = 2 remaining" in out
    code, again, _ = run("query", COUNT, "--epsilon", "1")
    assert "free, from the ledger" in again
    assert out.splitlines()[:3] == again.splitlines()[:3]
    assert "ε = 1; ε = 1 remaining" in run("query", COUNT, "--epsilon", "1", "--fresh")[1]


def test_query_as_json_and_csv(run: Run) -> None:
    _, out, _ = run("query", COUNT, "--epsilon", "1", "--json")
    read = json.loads(out)
    assert read["columns"] == ["region", "n"]
    assert [row[0] for row in read["rows"]] == ["North", "South"]
    assert read["intervals"][0][0] is None
    assert read["epsilon"] == "1"
    _, out, _ = run("query", COUNT, "--epsilon", "1", "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["region"] for row in rows] == ["North", "South"]
    assert float(rows[0]["n_low"]) < int(rows[0]["n"]) < float(rows[0]["n_high"])


def test_plan_says_of_what_a_relative_margin_is_and_warns_of_noise(run: Run) -> None:
    code, out, _ = run("plan", "SELECT AVG(age) AS age FROM visits", "--within", "5%")
    assert code == 0
    assert "5% of 55, the scale that the column bounds give" in _joined(out)
    code, out, _ = run("plan", "SELECT AVG(age) AS age, COUNT(*) AS n FROM visits", "--epsilon", "0.001")
    assert code == 0
    assert "age: ±110 on values of 0 to 110 is mostly noise. Ask for fewer groups or a larger ε." in _joined(out)
    assert "Warning" not in run("plan", COUNT, "--epsilon", "1")[1]


def test_plan_compares_the_noise_with_an_average_group_where_a_profile_tells_its_size(run: Run, folder: Path) -> None:
    """400 rows in two regions: ±225 is a fifth of a group of 1,000 rows, and more than these groups have."""
    text = (folder / "hubbub.yaml").read_text()
    (folder / "hubbub.yaml").write_text(
        text.replace("epsilon: 3", "epsilon: 80").replace("per_query: 2", "per_query: 60")
    )
    noisy = ("plan", COUNT, "--epsilon", "0.08")
    assert "Warning" not in run(*noisy)[1]
    code, _, err = run("profile", "visits", "--epsilon", "50")
    assert code == 0, err
    out = _joined(run(*noisy)[1])
    found = re.search(r"n: ±(\d+) is mostly noise: an average group of (\d+) rows gives at most (\d+)\.", out)
    assert found is not None, out
    assert found[2] == found[3]
    assert 180 <= int(found[2]) <= 220
    assert 220 <= int(found[1]) <= 230  # Laplace noise of scale 6/0.08 = 75 is within 75·ln 20 = 224.7 at 95%


def _joined(out: str) -> str:
    return " ".join(out.split())


def test_public_tables_need_no_epsilon(run: Run, folder: Path) -> None:
    (folder / "regions.csv").write_text("region,people\nNorth,3\nSouth,4\n")
    text = (folder / "hubbub.yaml").read_text()
    (folder / "hubbub.yaml").write_text(
        text.replace("analysts:", "  regions: {source: regions.csv, public: true}\nanalysts:")
    )
    code, out, _ = run("query", "SELECT region, people FROM regions ORDER BY people DESC")
    assert code == 0
    assert out.split()[:6] == ["region", "people", "South", "4", "North", "3"]
    assert "free: the answer is exact" in out
    code, out, _ = run("plan", "SELECT COUNT(*) AS n FROM regions")
    assert (code, "free: the query reads only public tables" in _joined(out)) == (0, True)
    assert json.loads(run("query", "SELECT COUNT(*) AS n FROM regions", "--json")[1])["rows"] == [[2]]
    code, _, err = run("query", COUNT)
    assert (code, "HB132" in err) == (1, True)


def test_query_within_solves_for_the_price(run: Run) -> None:
    _, out, _ = run("query", "SELECT COUNT(*) AS n FROM visits", "--within", "30", "--json")
    read = json.loads(out)
    low, high = read["intervals"][0][0]
    assert (high - low) / 2 <= 30


def test_query_takes_sql_from_a_file_and_parameters(run: Run, folder: Path) -> None:
    (folder / "q.sql").write_text("SELECT COUNT(*) AS n FROM visits WHERE region = $1 AND age > $2 -- a comment\n")
    code, out, _ = run("query", "@q.sql", "-e", "1", "-p", "North", "-p", "30", "--json")
    assert code == 0
    assert json.loads(out)["receipt"]["query"].endswith("-- $1 = 'North', $2 = 30")
    assert run("query", "@missing.sql", "-e", "1")[0] == 1


def test_explain_is_a_plan(run: Run) -> None:
    _, out, _ = run("query", f"EXPLAIN {COUNT}", "-e", "1")
    assert "this estimate is free" in out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("query", "SELECT * FROM visits", "-e", "1"), "HB5"),
        (("query", "SELECT notes, COUNT(*) FROM visits GROUP BY notes", "-e", "1"), "HB5"),
        (("query", COUNT, "-e", "2.5"), "HB201"),
        (("query", COUNT, "-e", "0"), "HB1"),
        (("query", COUNT, "-e", "1", "-a", "bob"), "HB121"),
        (("query", COUNT, "-e", "1", "--groups", "9"), "HB556"),
        (("query", COUNT, "-e", "1", "--weight", "m=2"), "HB138"),
        (("query", COUNT, "-e", "1", "--weight", "2"), "HB138"),
        (("query", COUNT, "-e", "1", "-c", "nowhere.yaml"), "HB410"),
        (("budget", "-c", "nowhere.yaml"), "HB410"),
        (("verify", "nowhere.json"), "HB134"),
        (("verify", "visits.csv"), "HB134"),
        (("audit", "ledger", "--since", "yesterday"), "HB136"),
        (("init", "nowhere.csv", "--output", "x.yaml"), "HB411"),
        (("admin", "forfeit", "--by", "me", "--reason", "why"), "HB135"),
    ],
)
def test_a_refusal_has_a_code_a_remedy_and_exit_code_one(run: Run, arguments: tuple[str, ...], code: str) -> None:
    exit_code, out, err = run(*arguments)
    assert exit_code == 1
    assert out == ""
    assert err.startswith(code)
    assert len(err.splitlines()) >= 2


@pytest.mark.parametrize("arguments", [(), ("nothing",), ("query", COUNT, "-e", "1", "-w", "2")])
def test_a_usage_error_exits_with_two(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2


def test_a_receipt_is_kept_and_verified_and_a_changed_one_is_not(run: Run, folder: Path) -> None:
    run("query", COUNT, "-e", "1", "--receipt", "r.json")
    code, out, _ = run("verify", "r.json")
    assert code == 0
    assert "verified" in out
    text = (folder / "r.json").read_text()
    (folder / "r.json").write_text(text.replace('"epsilon": "1"', '"epsilon": "1/2"'))
    code, out, _ = run("verify", "r.json")
    assert code == 1
    assert "NOT VERIFIED" in out


def test_the_ledger_is_audited_and_verified(run: Run, folder: Path) -> None:
    run("query", COUNT, "-e", "1")
    code, out, _ = run("verify", "ledger")
    assert code == 0
    assert "verified" in out
    assert "1 charge, 0 of them without a release" in out
    _, out, _ = run("audit", "ledger", "--kind", "charge")
    assert "SELECT region, COUNT(*) AS n FROM visits GROUP BY region" in out
    assert len(json.loads(run("audit", "ledger", "--json")[1])) == 3
    assert len(run("audit", "ledger", "--csv")[1].splitlines()) == 4
    assert run("audit", "ledger", "--until", "2001-01-01")[1] == ""


def test_an_older_ledger_is_refused_until_it_is_forfeited(run: Run, folder: Path) -> None:
    database = folder / "hubbub-ledger" / "ledger.db"
    run("query", COUNT, "-e", "1")
    old = database.read_bytes()
    run("query", COUNT, "-e", "1", "--fresh")
    database.write_bytes(old)
    code, _, err = run("query", COUNT, "-e", "0.1")
    assert code == 1
    assert "older copy" in " ".join(err.split())
    assert run("verify", "ledger")[0] == 1
    code, out, _ = run("admin", "forfeit", "--by", "ana", "--reason", "backup", "--epsilon", "1", "--yes")
    assert code == 0
    assert "dataset/visits" in out
    assert run("verify", "ledger")[0] == 0
    assert json.loads(run("budget", "--json")[1])[0]["caps"][1]["spent"] == "2"


def test_a_damaged_ledger_is_set_aside_by_a_forfeit(run: Run, folder: Path) -> None:
    database = folder / "hubbub-ledger" / "ledger.db"
    run("query", COUNT, "-e", "1")
    database.write_bytes(b"not a database" * 1000)
    assert run("query", COUNT, "-e", "0.1")[0] == 1
    code, out, _ = run("admin", "forfeit", "--by", "ana", "--reason", "damaged", "--yes")
    assert code == 0
    assert "unusable database was moved to" in out
    assert [
        path for path in database.parent.iterdir() if path.name.startswith("ledger.db.") and "lock" not in path.name
    ]
    code, _, err = run("query", COUNT, "-e", "0.1")
    assert code == 1
    assert err.startswith("HB201")


def test_python_dash_m_is_the_same_command(folder: Path) -> None:
    run = subprocess.run([sys.executable, "-m", "hubbub", "check"], capture_output=True, text=True, check=False)
    assert run.returncode == 0
    assert "is valid" in run.stdout


def test_the_reader_of_a_pipe_may_close_it(folder: Path) -> None:
    command = f"{sys.executable} -m hubbub check | head -1"
    run = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert run.returncode == 0
    assert "Traceback" not in run.stderr


def test_ctrl_c_stops_a_long_query_and_leaves_the_ledger_right(folder: Path, run: Run) -> None:
    """Much work for each of many rows runs long; it is stopped, and its charge stands without a release."""
    with duckdb.connect() as made:
        made.execute(
            "COPY (SELECT 'p' || (i % 3) AS patient, 'North' AS region, 1 AS age, 'n' AS notes, '' AS extra"
            f" FROM range(3000000) t(i)) TO '{folder}/visits.csv' (HEADER)"
        )
    sql = "SELECT COUNT(*) AS n FROM visits WHERE " + "greatest(0.5, age / " * 5 + "age" + ")" * 5 + " > 0"
    child = subprocess.Popen(
        [sys.executable, "-m", "hubbub", "query", sql, "-e", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    database = folder / "hubbub-ledger" / "ledger.db"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and child.poll() is None:
        if database.exists() and '"kind": "charge"' in run("audit", "ledger", "--json")[1]:
            break
        time.sleep(0.2)
    time.sleep(1)
    start = time.monotonic()
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=30)
    assert child.returncode == 130, err
    assert "Stopped" in err
    assert time.monotonic() - start < 10
    assert run("verify", "ledger")[0] == 0
    assert len(json.loads(run("audit", "ledger", "--unreleased", "--json")[1])) == 1


def test_failures_are_listed_and_cleared(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = run("admin", "failures")
    assert (code, "No query failed" in out) == (1, False)  # there is no ledger yet
    assert run("query", COUNT, "--epsilon", "0.1")[0] == 0
    assert "No query failed after its charge" in run("admin", "failures")[1]
    with monkeypatch.context() as patch:
        patch.setattr("hubbub.engines.duckdb.connection.DuckDBEngine.run", lambda *_: 1 / 0)
        for number in range(3):
            code, _, err = run("query", COUNT, "--epsilon", "0.1", "--key", f"k{number}")
            assert "HB900" in err
    code, out, _ = run("admin", "failures")
    assert code == 0
    assert re.search(r"ana\s+visits\s+3\s+3\s+charges 4, 6, 8", out)
    _, _, err = run("query", COUNT, "--epsilon", "0.1", "--key", "other")
    assert "HB325" in err
    code, out, _ = run("admin", "failures", "--clear", "ana", "visits", "--by", "olga")
    assert (code, "ana may query visits again" in out) == (0, True)
    assert run("query", COUNT, "--epsilon", "0.1", "--key", "other")[0] == 0
    assert run("verify", "ledger")[0] == 0
    assert "olga" in run("audit", "ledger", "--kind", "reviewed")[1]
    assert len(run("audit", "ledger", "--kind", "failure")[1].splitlines()) == 3
    assert "HB327" in run("admin", "failures", "--clear", "ana", "visits")[2]
