"""The catalog that PostgreSQL clients read: pg_catalog and information_schema, filled from declarations alone."""
