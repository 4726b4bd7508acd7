"""Laplace, Gaussian, selection, randomized response, partition selection, sparse vector; exact enumeration of loss."""
