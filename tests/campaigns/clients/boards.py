"""Apache Superset: SQL Lab, a dataset, charts and a filter, by its own API, in an installation that is thrown away.

HUBBUB_SUPERSET is its `superset` program, if it is not on the path. It keeps its own data in SQLite here. From PyPI,
version 6.1.0 also needs psycopg2-binary, rich, cachetools, and flask-caching 2.3.1.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.campaigns.clients.python import Address

_CONFIG = """\
SECRET_KEY = "only for this run"
SQLALCHEMY_DATABASE_URI = "sqlite:///{folder}/superset.db"
WTF_CSRF_ENABLED = TALISMAN_ENABLED = RATELIMIT_ENABLED = False
CACHE_CONFIG = FILTER_STATE_CACHE_CONFIG = EXPLORE_FORM_DATA_CACHE_CONFIG = {{"CACHE_TYPE": "SimpleCache"}}
DATA_CACHE_CONFIG = {{"CACHE_TYPE": "NullCache"}}
"""
_ADMIN = ("--username", "admin", "--password", "admin", "--firstname", "a", "--lastname", "b", "--email", "a@b.org")
_SETUP = (("db", "upgrade"), ("fab", "create-admin", *_ADMIN), ("init",))
_REGIONS = ["East", "North", "South", "West"]
#: Charges of all steps: three queries, each sent twice or once.
CHARGES = 3


def program() -> Path | None:
    """Return Superset's program."""
    found = os.environ.get("HUBBUB_SUPERSET") or shutil.which("superset")
    return Path(found) if found else None


def installed() -> str | None:
    """Return Superset's version, or None if it is not there."""
    command = program()
    if command is None:
        return None
    text = "from importlib.metadata import version; print(version('apache_superset'))"
    found = subprocess.run([command.with_name("python"), "-c", text], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def run(address: Address, folder: Path) -> dict[str, list[Any]]:
    """Set Superset up, and return what came of each step: the status and the rows or the error."""
    command = program()
    if command is None:
        raise FileNotFoundError("superset")
    (folder / "superset_config.py").write_text(_CONFIG.format(folder=folder))
    own = {"SUPERSET_CONFIG_PATH": str(folder / "superset_config.py"), "SUPERSET_HOME": str(folder)}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | own
    environment["FLASK_APP"] = "superset"
    for words in _SETUP:
        subprocess.run([command, *words], cwd=folder, env=environment, capture_output=True, check=True, timeout=600)
    url = address.url("postgresql") + "?options=-c%20hubbub.epsilon%3D0.1"
    steps = Path(__file__).with_name("superset_steps.py")
    ended = subprocess.run(
        [command.with_name("python"), str(steps), url],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if ended.returncode:
        raise RuntimeError(ended.stderr[-2000:])
    lines = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith('["')]
    return {name: found for name, *found in lines}


def verdicts(found: Mapping[str, list[Any]], charges: int) -> dict[str, str]:
    """Judge each step: "yes", or what came instead."""
    said = {name: json.dumps(each[1], ensure_ascii=False)[:200] for name, each in found.items()}
    priced, again = (found[f"SQL Lab: {name}"] for name in ("a query with a price", "again, free"))
    by_region, repeated = found["a chart by region"], found["the chart again, free"]
    over_time = found["a chart over time"]
    right = {
        "test the connection": found["test the connection"][0] == 200,
        "add the database": found["add the database"][0] == 201,
        "list tables": found["list tables"][1] == ["kinds", "visits"],
        "describe a table": found["describe a table"][1] == ["region", "age", "day", "cost"],
        "SQL Lab: a query with a price": priced[0] == 200 and [row["region"] for row in priced[1]] == _REGIONS,
        "SQL Lab: again, free": priced == again,
        "SQL Lab: a refusal": "HB510" in said["SQL Lab: a refusal"],
        "SQL Lab: goes on after it": found["SQL Lab: goes on after it"][1][0]["word"] == "a",
        "make a dataset": found["make a dataset"][0] == 201,
        "a chart by region": by_region[0] == 200 and sorted(row["region"] for row in by_region[1]) == _REGIONS,
        "the chart again, free": by_region == repeated and charges == CHARGES,
        "a chart over time": over_time[0] == 200 and len(over_time[1]) == 5,
        "the values of a filter": sorted(found["the values of a filter"][1]) == _REGIONS,
    }
    return {name: "yes" if ok else said[name] for name, ok in right.items()}
