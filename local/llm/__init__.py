"""A small language model on this machine, behind OpenAI's chat protocol: llama.cpp's own server."""
