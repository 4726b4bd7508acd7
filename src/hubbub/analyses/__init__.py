"""Analyses beyond one query: programs, tables, synthetic data, graphs, streams and user-defined functions."""
