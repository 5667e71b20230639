"""`sluice doctor`: what stands in the way of the suite, and how to mend it."""
