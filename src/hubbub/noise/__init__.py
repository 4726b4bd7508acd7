"""Randomness and exact samplers: the only package that draws a random number that privacy depends on."""
