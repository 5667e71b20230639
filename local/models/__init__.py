"""The bundled embedding model behind an OpenAI-compatible endpoint, one process on loopback."""
