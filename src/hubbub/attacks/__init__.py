"""Known privacy attacks on tables and on hubbub, compared with the maximum success rate under ε."""
