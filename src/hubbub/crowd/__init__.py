"""The crowd sanitizers of 2005, for comparison and attack; they are not differentially private."""
