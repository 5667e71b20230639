"""The `sluice` command: a thin layer over the suite's own interfaces."""
