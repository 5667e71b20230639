"""What the index holds: the agreement between ingest, which writes, and retrieve, which reads."""
