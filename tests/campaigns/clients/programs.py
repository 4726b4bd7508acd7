"""Clients of other languages: each is a program beside this file that prints a line for each step."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.campaigns.clients.python import Address
from tests.campaigns.clients.steps import Lines

HERE = Path(__file__).parent
_JDBC = Path(os.environ.get("HUBBUB_JDBC", "/usr/share/java/postgresql.jar"))


def jdbc() -> list[str] | None:
    """Return the command of the Java program, if Java and the driver are installed."""
    if shutil.which("javac") is None or not _JDBC.exists():
        return None
    return ["java", "-cp", str(_JDBC), str(HERE / "Client.java")]


def node() -> list[str] | None:
    """Return the command of the Node program, if Node finds `pg`; NODE_PATH says where else to look."""
    if shutil.which("node") is None:
        return None
    found = subprocess.run(["node", "-e", "require('pg')"], cwd=HERE, capture_output=True, check=False)
    return None if found.returncode else ["node", str(HERE / "client.js")]


def r() -> list[str] | None:
    """Return the command of the R program, if R has the package."""
    if shutil.which("Rscript") is None:
        return None
    found = subprocess.run(["Rscript", "-e", "library(RPostgreSQL)"], capture_output=True, check=False)
    return None if found.returncode else ["Rscript", str(HERE / "client.R")]


def attached() -> list[str] | None:
    """Return the command of DuckDB with its extension, if HUBBUB_DUCKDB names a Python that has both."""
    program = os.environ.get("HUBBUB_DUCKDB")
    return None if program is None else [program, str(HERE / "duckdb_attach.py")]


PROGRAMS: Mapping[str, Callable[[], list[str] | None]] = {
    "JDBC (pgjdbc)": jdbc,
    "Node (pg)": node,
    "R (RPostgreSQL)": r,
    "DuckDB (ATTACH)": attached,
}


def run(command: list[str], address: Address) -> tuple[str, Lines]:
    """Run a program; return the version that it says, and its lines."""
    ended = subprocess.run(
        command,
        env=os.environ | address.environment(),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    lines = dict(line.split("\t", 1) for line in ended.stdout.splitlines() if "\t" in line)
    if "sign in" not in lines:
        lines["sign in"] = f"error: {ended.stderr[-300:]}"
    return lines.pop("version", "?"), lines
