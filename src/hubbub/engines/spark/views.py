"""Reject Spark tables whose rows change although their files do not, and folders that Spark would misread.

Tested in tests/engines/test_spark_tables.py.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.engines.base import DataSource, UnreachableError, unsteady_view

if TYPE_CHECKING:
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.session import SparkSession

    Session = SparkSession
    Frame = DataFrame
else:
    Session = Frame = Any

_ANALYZED = re.compile(r"== Analyzed Logical Plan ==\n(.*?)\n== ", re.DOTALL)
#: Functions that depend on the clock, the session, chance or the layout of files, as a plan spells them.
_UNSTEADY = re.compile(
    r"\b(now|current_timestamp|current_date|curdate|current_time|localtimestamp|current_timezone|current_user|user"
    r"|session_user|current_catalog|current_database|current_schema|rand|randn|random|randstr|uniform|uuid|shuffle"
    r"|monotonically_increasing_id|spark_partition_id|input_file_name|input_file_block_start|input_file_block_length"
    r"|java_method|reflect|try_reflect|version)\(",
    re.IGNORECASE,
)
_USER_DEFINED = re.compile(r"\b(UDF|pythonUDF|pandasUDF|HiveSimpleUDF|HiveGenericUDF|HiveUDAF|HiveUDAFFunction)\b")
_SAMPLE = re.compile(r"^[\s:+-]*Sample ", re.MULTILINE)
#: Folders in which tables of other formats keep their log; their Parquet files also hold deleted rows.
_LOGS = {"_delta_log": "Delta", ".hoodie": "Hudi", "metadata": "Iceberg"}


def check_table(session: Session, source: DataSource, frame: Frame) -> None:
    """Raise an error if the rows of a table can change without a change of its files."""
    table = source.table or ""
    if "/" in table:
        _check_folder(session, source, table)
        return
    text = frame._explain_string(extended=True)  # noqa: SLF001 - `explain` only prints
    match = _ANALYZED.search(text)
    if match is None:
        raise UnreachableError("Spark does not show how the table is read", "Use a table instead of a view.")
    if "View (" in match[1]:
        check_plan(match[1])


def check_plan(plan: str) -> None:
    """Raise an error if the analyzed plan of a view depends on more than its tables."""
    call = _UNSTEADY.search(plan)
    if call is not None:
        raise unsteady_view(f"{call[1].lower()}()")
    if _SAMPLE.search(plan):
        raise unsteady_view("TABLESAMPLE")
    if _USER_DEFINED.search(plan):
        raise unsteady_view("a user-defined function")


def _check_folder(session: Session, source: DataSource, table: str) -> None:
    here = not source.address.startswith("sc://")
    for log, name in _LOGS.items():
        if here:
            present = (Path(table) / log).is_dir()
        else:
            present = log == "_delta_log" and _exists(session, f"{table.rstrip('/')}/{log}")
        if present:
            raise UnreachableError(
                f"it is the folder of a {name} table, whose Parquet files also hold deleted rows",
                "Use the name of the table in Spark's catalog: spark:sc://host:15002/catalog.schema.table.",
            )


def _exists(session: Session, path: str) -> bool:
    try:
        return bool(session.read.format("binaryFile").load(path).columns)
    except Exception as error:
        if str(getattr(error, "getCondition", lambda: "")() or "").startswith("PATH_NOT_FOUND"):
            return False
        raise
