"""Synthetic data: artificial rows whose counts approximate those of the real data."""
