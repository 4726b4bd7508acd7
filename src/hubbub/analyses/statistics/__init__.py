"""Statistics with an answer that allows for the privacy noise: tests, survival curves, regressions of counts."""
