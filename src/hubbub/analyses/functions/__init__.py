"""An owner's own function: released with noise by its declared sensitivity, or run on blocks that nobody shares."""
