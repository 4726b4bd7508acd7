"""How each engine writes SQL: one file an engine, one table of functions in each. The planner never asks which."""
