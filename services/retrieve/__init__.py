"""The right passages, only those that the caller may read."""
