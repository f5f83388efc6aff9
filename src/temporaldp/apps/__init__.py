"""Programs.

serve  the HTTP service (releases: its requests) and its page (page)
cli    the commands (main lists them; options: those that they share)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["cli", "serve"])
