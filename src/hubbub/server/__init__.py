"""The HTTP server: API, web pages, accounts, jobs."""
