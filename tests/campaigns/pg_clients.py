"""Real clients on the PostgreSQL port: each takes the same steps, and the ledger is asked what they cost.

At the small scale only the clients of the development environment run. `HUBBUB_CAMPAIGN=full` runs all that are
installed, and names those that are not. With `--write` the results go to `clients/results.json`, and from there to the
table in docs/postgres.md; and what the clients asked the catalog becomes a fixture of the tests of the port.

The planted error is a client that asks its query with new noise: the step "again, free" must see it.
"""

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.campaigns.clients import boards, dbt, programs, python, recorder, steps
from tests.campaigns.clients.python import Address
from tests.campaigns.frame import Report, run
from tests.gateway.conftest import Port, port

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "clients" / "results.json"
PAGE = ROOT / "docs" / "postgres.md"
BEGIN = "<!-- clients: begin, written by `python -m tests.campaigns.pg_clients --write` -->"
END = "<!-- clients: end -->"

#: Clients of the development environment.
OWN = (
    "psql",
    "psycopg",
    "psycopg, async",
    "psycopg, pipeline",
    "SQLAlchemy and pandas",
    "hubbub+pg:// and pandas",
    "polars",
)
NAMES = (*python.CLIENTS, *programs.PROGRAMS)
_USERS = {name: f"client{number}" for number, name in enumerate((*NAMES, "dbt", "planted", "Superset"))}

_YAML = """\
version: 1
datasets:
  visits:
    source: visits.csv
    unit: row
    columns:
      region: {values: [North, South, East, West]}
      age:    {type: integer, bounds: [0, 110]}
      day:    {type: date, bounds: [2026-01-01, 2026-01-31]}
      cost:   {bounds: [0, 100], step: 0.01}
    budget: {epsilon: 100}
  kinds: {source: kinds.csv, public: true}
"""


@contextmanager
def started(folder: Path) -> Iterator[tuple[Port, Mapping[str, Address]]]:
    """Start a port, with an analyst for each client."""
    regions = ("North", "South", "East", "West")
    rows = [f"{regions[n % 4]},{n % 90},2026-01-{1 + n % 28:02},{n % 50}.25" for n in range(400)]
    (folder / "visits.csv").write_text("\n".join(["region,age,day,cost", *rows, ""]))
    (folder / "kinds.csv").write_text("word,whole,part,day\na,1,2.5,2026-01-31\nb,2,-0.25,1999-12-31\n")
    analysts = [f"  {user}: {{visits: {{epsilon: 2}}}}" for user in (*_USERS.values(), "ana", "ben", "eve")]
    (folder / "hubbub.yaml").write_text("\n".join([_YAML + "analysts:", *analysts, ""]))
    with port(folder) as running:
        issue = running.service.accounts.issue
        tokens = {name: issue(user, "analyst", 1).text for name, user in _USERS.items()}
        yield running, {name: Address(running.number, _USERS[name], tokens[name]) for name in _USERS}


def charges(running: Port, address: Address) -> int:
    """Ask the ledger how many queries of a client were charged."""
    running.tokens[address.user] = address.token
    found = running.connect(address.user).execute("SELECT COUNT(*) FROM hubbub.releases").fetchone()
    return 0 if found is None else int(found[0])


def tried(running: Port, addresses: Mapping[str, Address], *, every: bool) -> tuple[dict[str, Any], list[str]]:
    """Let the clients take their steps; return what came of them, and which are not installed."""
    results: dict[str, Any] = {}
    absent = []
    for name in NAMES if every else OWN:
        address, lines = addresses[name], None
        if name in python.CLIENTS:
            version = python.installed(name)
            if version is not None:
                lines = python.run(name, address)
        else:
            command = programs.PROGRAMS[name]()
            version, lines = programs.run(command, address) if command else (None, None)
        if lines is None:
            absent.append(name)
        else:
            results[name] = {"version": version, "steps": steps.verdicts(lines, charges(running, address))}
    return results, absent


def planted(running: Port, addresses: Mapping[str, Address]) -> bool:
    """Return whether a client that pays for the repetition is seen."""
    import psycopg

    address = addresses["planted"]
    with psycopg.connect(address.url("postgresql"), autocommit=True) as connection:
        asked: list[str] = []

        def fetch(sql: str) -> steps.Rows:
            asked.append(sql)
            connection.execute(f"SET hubbub.fresh = 'n{len(asked)}'")
            return connection.execute(sql).fetchall()

        lines = steps.walk(
            fetch,
            lambda sql, limit: connection.execute(sql, (limit,)).fetchall(),
            placeholder="%s",
            execute=connection.execute,
        )
    return steps.verdicts(lines, charges(running, address))["again"] != "yes"


#: What cannot work: DuckDB wraps every statement in a SELECT of its own.
EXPECTED = ("DuckDB (ATTACH), explain",)
#: Tools that take steps of their own, and the line above the table of each.
TOOLS = {
    "dbt": "dbt {}, on a target that cannot be written:",
    "superset": "Apache Superset {}, by its REST API, with `options=-c hubbub.epsilon=0.1` in the URL of the database:",
}
#: What could not be tried, because there is no package of it where packages can be had.
OTHERS = ("RPostgres", "Metabase", "Grafana", "Tableau", "Power BI")


def tables(stored: Mapping[str, Any]) -> str:
    """Write the tables of stored results."""
    heads = ["client", "version", *steps.STEPS.values()]
    lines = [
        f"On {stored['date']}, with `{stored['command']}`. Each client signs in, and takes the same steps.",
        "",
        f"| {' | '.join(heads)} |",
        f"|{'---|' * len(heads)}",
    ]
    notes = []
    for name, result in stored["clients"].items():
        cells = []
        for step in steps.STEPS:
            verdict = result["steps"][step]
            if verdict != "yes":
                notes.append(f"- {name}, {steps.STEPS[step]}: {_plain(verdict)}")
            cells.append("yes" if verdict == "yes" else "no")
        lines.append(f"| {name} | {result['version']} | {' | '.join(cells)} |")
    if notes:
        lines += ["", "What did not work:", "", *notes]
    for key, told in TOOLS.items():
        if stored.get(key):
            lines += ["", told.format(stored[key]["version"]), "", "| step | works |", "|---|---|"]
            lines += [f"| {step} | {_plain(said)} |" for step, said in stored[key]["steps"].items()]
    lines += ["", f"Not tried: {', '.join(stored['not tried'])}."]
    return "\n".join(lines)


def _plain(text: str) -> str:
    return text if text == "yes" else "`" + text.replace("|", "/").replace("`", "'") + "`"


def page(text: str, stored: Mapping[str, Any]) -> str:
    """Return the page with the tables of stored results in their place."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{tables(stored)}\n{END}{rest.partition(END)[2]}"


def _board(running: Port, address: Address) -> dict[str, Any] | None:
    """Let Superset take its steps, if it is installed."""
    version = boards.installed()
    if version is None:
        return None
    with tempfile.TemporaryDirectory() as place:
        found = boards.run(address, Path(place))
    return {"version": version, "steps": boards.verdicts(found, charges(running, address))}


def campaign(report: Report) -> None:
    """Run the clients; every step of every client has to work."""
    with (
        tempfile.TemporaryDirectory() as folder,
        started(Path(folder)) as (running, addresses),
        recorder.recording() as questions,
    ):
        results, absent = tried(running, addresses, every=report.full)
        seen = planted(running, addresses)
        project: dict[str, Any] | None = None
        version = dbt.installed() if report.full else None
        if version is not None:
            with tempfile.TemporaryDirectory() as place:
                project = {"version": version, "steps": dbt.run(addresses["dbt"], Path(place))}
        board = _board(running, addresses["Superset"]) if report.full else None
    failed = [
        f"{name}, {step}: {said}"
        for name, each in results.items()
        for step, said in each["steps"].items()
        if said != "yes"
    ]
    failed += [f"Superset, {step}: {said}" for step, said in (board or {"steps": {}})["steps"].items() if said != "yes"]
    for line in failed:
        report.say(line)
    report.figure("clients", len(results))
    report.figure("not installed", list(absent))
    report.figure("dbt", None if project is None else dict(project["steps"]))
    report.figure("superset", None if board is None else dict(board["steps"]))
    unexpected = [line for line in failed if not line.startswith(EXPECTED)]
    report.target("steps that did not work", len(unexpected), at_most=0)
    for line in questions.refused:
        report.say(f"not answered by the catalog: {line}")
    report.figure("questions to the catalog", sum(map(len, questions.asked.values())))
    report.target("questions that the catalog refused", len(questions.refused), at_most=0)
    report.target("clients that ran", len(results), at_least=len(OWN) - 1)
    report.target("the planted error is seen", int(seen), at_least=1)
    if "--write" in sys.argv:
        # what is not installed here keeps what came of it before
        before = json.loads(RESULTS.read_text())
        results = {name: results.get(name) or before["clients"].get(name) for name in NAMES}
        results = {name: each for name, each in results.items() if each}
        absent = [name for name in absent if name not in results]
        project, board = project or before["dbt"], board or before.get("superset")
        tools = [name for name, each in (("dbt", project), ("Superset", board)) if each is None]
        stored = {
            "date": f"{datetime.now(UTC):%d %B %Y}".lstrip("0"),
            "command": "HUBBUB_CAMPAIGN=full python -m tests.campaigns.pg_clients --write",
            "clients": results,
            "dbt": project,
            "superset": board,
            "not tried": [*absent, *tools, *OTHERS],
        }
        questions.write({name: user for name, user in _USERS.items() if name != "planted"})
        RESULTS.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n")
        PAGE.write_text(page(PAGE.read_text(), stored))


if __name__ == "__main__":
    run(campaign)
