"""The process that works jobs off: it conducts the same stages as the gateway, as batch work."""
