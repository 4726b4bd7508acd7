"""Separations between publishing and querying: exact results on parities (Dwork et al. 2006)."""
