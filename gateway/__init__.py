"""The door: admits a question or refuses it, then conducts the stages."""
