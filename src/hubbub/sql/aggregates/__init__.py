"""The aggregates: which measures each needs, and how it is finished from their noisy sums.

An aggregate is one function that gives a `Formula` (counts, sums, moments) or a `Choice` (quantiles, extremes, mode).
"""
