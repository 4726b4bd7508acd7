"""The client of a server: needs httpx, and no engine, parser or ledger."""
