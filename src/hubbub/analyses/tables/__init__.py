"""Published tables: contingency tables, hierarchical counts, and histograms for range queries."""
