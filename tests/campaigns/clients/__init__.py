"""Programs that use the PostgreSQL port as people's own would, each with the client that it is named after."""
