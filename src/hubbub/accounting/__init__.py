"""What a sequence of events costs: prices, composition and filters (pure), policy (pure), the ledger (state)."""
