"""Surveys that need no trust: every answer is randomised by whoever gives it, before it leaves their hands."""
