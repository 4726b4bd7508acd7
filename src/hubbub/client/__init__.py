"""The client of a server, and DB-API 2.0; needs httpx2, and no engine, parser or ledger."""
