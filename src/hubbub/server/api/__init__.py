"""The HTTP API, /api/v1: thin routes over the service."""
