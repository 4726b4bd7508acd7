"""Private statistics over streams: continual counts, and the density of a universe with a pan-private state."""
