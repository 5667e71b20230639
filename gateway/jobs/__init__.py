"""Questions that are answered later: accepted durably, worked off by gateway.worker, fetched."""
