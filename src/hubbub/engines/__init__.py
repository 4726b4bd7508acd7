"""Where the data is: each engine runs what we render and returns secrets. Engines know no ε."""
