"""What the model will see, and why: pure, exact, the same for the same request."""
