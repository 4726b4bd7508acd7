"""DuckDB: files and embedded databases, opened once and locked down."""
