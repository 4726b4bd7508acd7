"""hubbub: answers about the crowd, never about the person."""
