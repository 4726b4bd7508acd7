"""The local model: surveys whose respondents randomize their own answers."""
