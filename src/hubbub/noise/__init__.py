"""Randomness and exact samplers. Nothing else draws a random number that privacy depends on."""
