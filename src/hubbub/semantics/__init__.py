"""What ε and δ mean: posteriors, odds, hypothesis tests, games of beliefs."""
