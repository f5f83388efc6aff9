"""The page: files that a browser runs, and what only the server can compute for them. Nothing of it is stored or logged."""

from temporaldp.serve.page.router import page_router

__all__ = ["page_router"]
