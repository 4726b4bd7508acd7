"""Surveys that need no trust: every answer is randomized by whoever gives it, before it leaves their hands."""
