"""The embedded parts that let the whole suite run on one machine."""
