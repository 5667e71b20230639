"""A process that serves Qdrant's own gRPC API over Qdrant Edge, for one machine."""
