"""PostgreSQL: queries run on the server, in a read-only session."""
