"""Privacy costs, composition, privacy filters and policies (pure); the ledger with its stores and verification."""
