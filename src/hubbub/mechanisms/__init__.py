"""Mechanisms: pure given a random source. Each is a frozen object with its loss, event, sample, law and error."""
