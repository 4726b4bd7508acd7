"""Private programs over the curator, from noisy sums only: k-means, PCA, regression, trees, itemsets, hyperplanes."""
