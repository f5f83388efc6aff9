"""Asking for it over HTTP: a page to think with, and releases behind an interface for programs in any language."""

from temporaldp.serve.client import Client

__all__ = ["Client"]
