"""Asking against publishing: what no table that is published once can tell, and one private answer tells."""
