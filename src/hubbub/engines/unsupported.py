"""Sources that hubbub does not read, and what to do instead.

Tested in tests/engines/test_sources.py.
"""

import re

from hubbub.errors import ConfigError

_SCHEME = re.compile(r"([a-z][a-z0-9.-]*)(?:\+[a-z0-9_]+)?:", re.IGNORECASE)
_SPARK = "or read it with Spark: spark:sc://host:15002/catalog.schema.table"
_EXPORT = "Export the table to Parquet"
_COPY = f"{_EXPORT}, for example with DuckDB (ATTACH, then COPY … TO 'table.parquet'), {_SPARK}."
#: The name of each system, and the remedy.
_SYSTEMS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("mysql", "mariadb"), "MySQL", _COPY),
    (("mssql", "sqlserver"), "SQL Server", f"{_EXPORT}, {_SPARK}."),
    (("oracle",), "Oracle", f"{_EXPORT}, {_SPARK}."),
    (
        ("snowflake",),
        "Snowflake",
        f"{_EXPORT} with COPY INTO @stage … FILE_FORMAT = (TYPE = PARQUET), {_SPARK}.",
    ),
    (("bigquery", "bq"), "BigQuery", f"{_EXPORT} with EXPORT DATA OPTIONS (format = 'PARQUET', …), {_SPARK}."),
    (("redshift",), "Redshift", f"{_EXPORT} with UNLOAD … FORMAT PARQUET, {_SPARK}."),
    (
        ("databricks",),
        "Databricks",
        "Use its Spark Connect address: spark:sc://host:443/;token=…/catalog.schema.table.",
    ),
    (
        ("iceberg", "hudi"),
        "lakehouse table",
        "Read it with Spark, by its name in the catalog: spark:sc://host:15002/catalog.schema.table. The Parquet files"
        " of its folder also hold deleted rows.",
    ),
    (
        ("delta",),
        "remote Delta Lake table",
        "For a table on this machine, write delta:path/to/folder, without slashes after the colon. Read others with"
        " Spark: spark:sc://host:15002/catalog.schema.table.",
    ),
    (("clickhouse", "trino", "presto", "hive", "impala", "athena"), "SQL server", f"{_EXPORT}, {_SPARK}."),
    (("mongodb", "elasticsearch", "cassandra"), "document store", f"{_EXPORT}, {_SPARK}."),
    (("motherduck", "md"), "MotherDuck", f"{_EXPORT} with COPY … TO 'table.parquet'."),
    (
        ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "hdfs", "http", "https", "ftp", "file"),
        "remote file",
        "Copy the file to this machine, or read it with Spark: spark:sc://host:15002/s3a://bucket/table.parquet.",
    ),
    (("jdbc",), "JDBC address", "Write postgresql://user@host:5432/database/schema.table without jdbc:."),
    (("postgresql", "postgres"), "SQLAlchemy address", "Write postgresql:// without a driver."),
    (("sqlite",), "SQLAlchemy address", "Write sqlite:path/to/file#table, without slashes after the colon."),
    (("duckdb",), "SQLAlchemy address", "Write duckdb:path/to/file#table, without slashes after the colon."),
)


def check_supported(source: str, path: str) -> None:
    """Raise an error if a source names a system that hubbub does not read. It may contain a password: never show it."""
    match = _SCHEME.match(source)
    scheme = match[1].lower() if match is not None else ""
    for schemes, system, remedy in _SYSTEMS:
        if scheme in schemes:
            raise ConfigError("HB769", f"{path}: hubbub does not read this kind of source ({system}).", remedy)
    if "://" in source:
        raise ConfigError(
            "HB410",
            f"{path} has an unsupported source type.",
            "Use a CSV, Parquet, DuckDB or SQLite file, or an address that starts with postgresql:// or spark:.",
        )
