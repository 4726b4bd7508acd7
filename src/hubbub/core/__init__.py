"""Exact numbers, directed rounding, privacy losses, events, distributions and schemas; pure, without I/O."""
