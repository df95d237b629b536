"""The command line: one file per command, on top of library functions."""

from noslip.cli.app import app, main

__all__ = ["app", "main"]
