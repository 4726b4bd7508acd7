"""What a hostile analyst does: each attack wins on an unprotected target and is held under a ceiling by hubbub."""
