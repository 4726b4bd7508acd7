"""What goes beyond one query: how a private program is asked for, planned, charged and run."""
