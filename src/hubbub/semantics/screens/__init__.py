"""Screens that explain: each shows one fact as sentences, a table and a figure, for parameters to vary."""
