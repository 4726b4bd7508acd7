"""A first private answer over bundled data: the RAND Health Insurance Experiment (see README.md here)."""
