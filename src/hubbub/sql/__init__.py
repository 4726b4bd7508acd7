"""From the analyst's text to a checked tree, a plan, and the engine's SQL; pure, never sees data."""
