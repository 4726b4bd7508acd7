"""dbt: a project with three models, five generic tests and one of its own, on a target that cannot be written.

Ephemeral models, tests and `dbt show` send a query, whose price comes from PGOPTIONS. Models that are tables or views
send CREATE, which is refused.
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
_ENVIRONMENT = {
    "PGOPTIONS": "-c hubbub.epsilon=0.05",
    "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    "DO_NOT_TRACK": "1",
}
_PROJECT = "name: hubbub_project\nversion: '1.0'\nprofile: hubbub\nmodel-paths: [models]\ntest-paths: [tests]\n"
_MODELS = {
    "adults.sql": "{{ config(materialized='ephemeral') }} select region, age from visits where age >= 18",
    "by_region.sql": "{{ config(materialized='ephemeral') }}"
    " select region, count(*) as n from {{ ref('adults') }} group by region",
    "stored.sql": "{{ config(materialized='table') }} select region, count(*) as n from visits group by region",
}
#: Generic tests. The number of failures of a private table has noise, so its test needs a threshold.
_SCHEMA = """\
version: 2
sources:
  - name: public
    database: hubbub
    schema: public
    tables:
      - name: kinds
        columns:
          - name: word
            data_tests: [unique, not_null, {accepted_values: {arguments: {values: [a, b]}}}]
      - name: visits
        columns:
          - name: age
            data_tests: [{not_null: {config: {error_if: ">1000", warn_if: ">1000"}}}]
models:
  - name: adults
    columns:
      - name: region
        data_tests: [{accepted_values: {arguments: {values: [North, South, East, West]}}}]
"""
#: What is tried, with the command; `show` sends a query and prints its rows.
STEPS = {
    "debug (sign in)": ("debug",),
    "list": ("list",),
    "compile": ("compile", "--select", "by_region"),
    "show of a SELECT": (
        "show",
        "--inline",
        "select region, count(*) as n from visits group by region",
    ),
    "show of an ephemeral model": ("show", "--select", "by_region"),
    "tests (unique, not_null, accepted_values, own)": ("test",),
    "docs generate": ("docs", "generate"),
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
    (folder / "models" / "schema.yml").write_text(_SCHEMA)
    (folder / "tests" / "no_unknown_word.sql").write_text("select word from kinds where word not in ('a', 'b')\n")
    said = {}
    for name, command in STEPS.items():
        ended = subprocess.run(
            ["dbt", "--no-use-colors", *command, "--profiles-dir", "."],
            cwd=folder,
            env=os.environ | _ENVIRONMENT,
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
