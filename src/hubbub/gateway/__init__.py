"""The server for PostgreSQL clients: psql, drivers and BI tools ask the same service as over HTTP."""
