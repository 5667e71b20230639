"""Bytes of one format to Markdown, each in a process of its own that is ended with its document."""
