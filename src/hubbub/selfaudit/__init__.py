"""The audit that hubbub runs on itself in production: of one release, and every night on made-up data."""
