"""Machine learning from noisy sums: k-means, PCA, regression, decision trees, itemsets, hyperplanes."""
