"""Running the application: one process, which answers until it is told to stop and then finishes what it has begun."""

from __future__ import annotations

import uvicorn

from temporaldp.serve.application import create_app
from temporaldp.serve.settings import Settings


def serve(settings: Settings, *, address: str, port: int) -> None:
    """Serve until the process is told to stop (SIGTERM, SIGINT)."""
    uvicorn.run(create_app(settings), host=address, port=port, log_level="warning", server_header=False)
