"""Read the log of a Delta Lake table with the package `deltalake`, never a row of the table.

The package has threads of its own, which a fork does not take along: a forked process that used it would stop. Where
the process was forked from one that has read a log, another program is started that reads it: `python -m
hubbub.engines.duckdb.delta_log FOLDER`.

Tested in tests/engines/test_delta.py.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hubbub.engines.base import UnreachableError
from hubbub.errors import ConfigError

#: The process that has begun the package's threads, if one has.
_begun_in: list[int] = []
_SECONDS = 60


def read_log(folder: Path) -> dict[str, Any]:
    """Return the newest version of a table: its number, identifier, protocol, settings, columns and files."""
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ImportError:
        raise ConfigError(
            "HB411",
            "Delta Lake sources require the deltalake package, which is not installed.",
            'Run pip install "hubbub[delta]".',
        ) from None
    try:
        if _begun_in and _begun_in != [os.getpid()]:
            return _elsewhere(folder)
        _begun_in[:] = [os.getpid()]
        return _contents(DeltaTable(folder))
    except (DeltaError, OSError, ValueError, subprocess.SubprocessError):
        raise UnreachableError(
            "the package deltalake cannot read the log of its table",
            "Check the folder _delta_log. If a newer program wrote the table, update the package.",
        ) from None


def _contents(table: Any) -> dict[str, Any]:
    described, protocol = table.metadata(), table.protocol()
    actions = table.get_add_actions(flatten=False)
    names = described.partition_columns
    values = actions.column("partition").to_pylist() if names else [{}] * actions.num_rows
    return {
        "version": table.version(),
        "id": described.id,
        "reader": protocol.min_reader_version,
        "features": list(protocol.reader_features or ()),
        "configuration": described.configuration,
        "columns": json.loads(table.schema().to_json())["fields"],
        "partitioned_by": names,
        "paths": actions.column("path").to_pylist(),
        "partitions": [[_written(value[name]) for name in names] for value in values],
    }


def _elsewhere(folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", __spec__.name, str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_SECONDS, check=True)  # noqa: S603
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _written(value: object) -> str | None:
    """Write the value of a partition column as text that DuckDB casts back."""
    if value is None:
        return None
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


if __name__ == "__main__":
    json.dump(read_log(Path(sys.argv[1])), sys.stdout)
