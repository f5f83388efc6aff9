"""The HTTP service: an interactive page, and releases behind an interface for programs in any language."""

from temporaldp.apps.serve.client import Client

__all__ = ["Client"]
