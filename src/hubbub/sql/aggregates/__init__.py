"""Aggregate functions: the measures or candidates that each one needs, and how it is computed from noisy results.

Each aggregate is an `AggregateFunction` in `table.AGGREGATES`. A `FormulaAggregate` is computed from noisy sums; a
`SelectionAggregate` is one of a finite list of candidates, chosen by private selection.
"""
