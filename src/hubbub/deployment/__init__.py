"""A whole deployment: export and import, formats and upgrades, and keys that are rotated."""
