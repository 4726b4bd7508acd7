"""What hubbub does to itself: exact enumeration of what a mechanism leaks."""
