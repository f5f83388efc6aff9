"""Programs: the command line, and the HTTP service with its page."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["cli", "serve"])
