"""Graphs whose edges are the private rows: cuts, trees, distances from properties, degrees, triangles."""
