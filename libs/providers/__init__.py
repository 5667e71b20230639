"""How a model is called: one attempt inside its reservation, failures classified."""
