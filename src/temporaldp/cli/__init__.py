"""The command `temporaldp`: parse, call public functions, render."""

from temporaldp.cli.main import app, main

__all__ = ["app", "main"]
