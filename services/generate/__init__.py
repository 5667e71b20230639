"""One validated answer from assembled evidence, or an honest refusal."""
