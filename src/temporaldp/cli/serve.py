"""`temporaldp serve`: the page, and releases behind HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from temporaldp import InputError
from temporaldp.cli.render import console


def serve(
    port: Annotated[int, typer.Option("--port", help="Where to listen.", min=0, max=65535)] = 8477,
    address: Annotated[str, typer.Option("--address", help="On which address to listen.")] = "127.0.0.1",
    store: Annotated[
        str | None,
        typer.Option(
            "--store", help="Releases: SQLite file or postgresql:// URL. Without: only the page.", show_default=False
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="A name by which others ask for this server; repeat.",
            show_default=False,
        ),
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open the page.")] = False,
) -> None:
    """Serve the page and, with a store, releases behind HTTP."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise InputError(f"{error}; install what the server needs: pip install 'temporaldp[serve]'") from None
    from temporaldp.serve.server import serve as run
    from temporaldp.serve.settings import LOCAL_HOSTS, Settings

    url = f"http://{address}:{port}/"
    if not no_browser:
        import webbrowser

        webbrowser.open(url)
    console.print(url)
    run(Settings(store=store, hosts=(*LOCAL_HOSTS, *(allow_host or ()))), address=address, port=port)
