"""Connections to DuckDB, PostgreSQL and Spark: they run the SQL they are given and return secrets."""
