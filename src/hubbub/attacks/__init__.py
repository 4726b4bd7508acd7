"""What a hostile analyst can do: attacks that win on unprotected targets and are held by hubbub."""
