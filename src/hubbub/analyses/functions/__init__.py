"""User-defined functions: noise calibrated to a declared sensitivity, or sample and aggregate in a sandbox."""
