"""Spark: queries run on a cluster, through Spark Connect."""
