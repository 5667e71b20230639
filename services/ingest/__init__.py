"""Documents in, live passages out."""
