"""From the analyst's text to a checked plan, and from the plan to the engine's SQL. Pure: never sees data."""
