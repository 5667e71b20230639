"""The web page: static files, and what serves them."""
