"""Screens that explain: each shows one fact of the papers as sentences, a table and a figure, for parameters to vary."""
