"""How a process runs: settings, identity, deadlines, errors, channels, serving, telemetry."""
