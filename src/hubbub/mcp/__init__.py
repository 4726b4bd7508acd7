"""Tools for AI assistants by the Model Context Protocol: an assistant may ask, a person pays."""
