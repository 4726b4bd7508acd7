"""Crowd sanitizers of 2005 and what isolates a point: for comparison and attack; not differentially private."""
