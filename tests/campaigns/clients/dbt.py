"""dbt: a project with three models and a test on a target that cannot be written.

Ephemeral models and `dbt show` send a query. Models that are tables or views send CREATE, which is refused.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from tests.campaigns.clients.python import Address

_PROFILE = """\
hubbub:
  target: port
  outputs:
    port:
      type: postgres
      host: {host}
      port: {port}
      user: {user}
      password: "{token}"
      dbname: {database}
      schema: public
      threads: 1
"""
_PROJECT = "name: hubbub_project\nversion: '1.0'\nprofile: hubbub\nmodel-paths: [models]\ntest-paths: [tests]\n"
_MODELS = {
    "adults.sql": "{{ config(materialized='ephemeral') }} select region, age from visits where age >= 18",
    "by_region.sql": "{{ config(materialized='ephemeral') }}"
    " /* epsilon=0.1 */ select region, count(*) as n from {{ ref('adults') }} group by region",
    "stored.sql": "{{ config(materialized='table') }} select region, count(*) as n from visits group by region",
}
#: What is tried, with the command; `show` sends a query and prints its rows.
STEPS = {
    "debug (sign in)": ("debug",),
    "list": ("list",),
    "compile": ("compile", "--select", "by_region"),
    "show of a SELECT": (
        "show",
        "--inline",
        "/* epsilon=0.1 */ select region, count(*) as n from visits group by region",
    ),
    "show of an ephemeral model": ("show", "--select", "by_region"),
    "a test": ("test",),
    "run of a table": ("run", "--select", "stored"),
}


def installed() -> str | None:
    """Return dbt's version, or None if it is not there."""
    if shutil.which("dbt") is None:
        return None
    found = subprocess.run(["dbt", "--version"], capture_output=True, text=True, check=False).stdout
    versions = re.findall(r"(?:installed|postgres): +([0-9.]+)", found)
    return ", ".join(versions) or "?"


def run(address: Address, folder: Path) -> dict[str, str]:
    """Run every step; return "yes", or the end of what dbt said."""
    (folder / "models").mkdir()
    (folder / "tests").mkdir()
    (folder / "dbt_project.yml").write_text(_PROJECT)
    parts = {"host": address.host, "port": address.port, "user": address.user, "token": address.token}
    (folder / "profiles.yml").write_text(_PROFILE.format(database=address.database, **parts))
    for name, text in _MODELS.items():
        (folder / "models" / name).write_text(text + "\n")
    (folder / "tests" / "no_unknown_word.sql").write_text("select word from kinds where word not in ('a', 'b')\n")
    said = {}
    for name, command in STEPS.items():
        ended = subprocess.run(
            ["dbt", "--no-use-colors", *command, "--profiles-dir", "."],
            cwd=folder,
            env=os.environ | {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DO_NOT_TRACK": "1"},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        refusal = re.search(r"HB\d{3} [^\n]*", ended.stdout)
        said[name] = (
            "yes" if ended.returncode == 0 else refusal[0] if refusal else " ".join(ended.stdout.split())[-300:]
        )
    return said
