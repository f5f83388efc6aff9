"""`temporaldp serve`: the page, and releases over HTTP."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from temporaldp.apps.cli.console import console
from temporaldp.base.errors import InputError
from temporaldp.base.extras import needing

StoreOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--store",
        envvar="TEMPORALDP_STORE",
        metavar="STORE",
        help="Store of the releases: SQLite file or postgresql:// URL.",
        show_default=False,
    ),
]


def serve(
    port: Annotated[
        int, typer.Option("--port", help="Port to listen on; 0 for any free port.", min=0, max=65535)
    ] = 8477,
    address: Annotated[str, typer.Option("--address", help="Address to listen on.")] = "127.0.0.1",
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            envvar="TEMPORALDP_STORE",
            metavar="STORE",
            help="Store of the releases: SQLite file or postgresql:// URL. Without it, only the page is served.",
            show_default=False,
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="Host name under which clients reach this server; repeatable.",
            show_default=False,
        ),
    ] = None,
    page: Annotated[
        bool, typer.Option("--page", help="Also serve the page beside a --store, to browsers with a token.")
    ] = False,
    log: Annotated[bool, typer.Option("--log", help="Log every request as a line of JSON to standard error.")] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open the page.")] = False,
) -> None:
    """Serve the page or, with a store, releases over HTTP, until stopped (Ctrl-C, SIGTERM)."""
    with needing("serve"):
        from temporaldp.apps.serve.server import LOCAL_HOSTS, create_app
        from temporaldp.apps.serve.server import serve as run

    def started(url: str) -> None:
        console.print(url, markup=False)
        if (page or store is None) and not no_browser:
            import webbrowser

            webbrowser.open(url)

    if any("*" in name for name in allow_host or ()):
        raise InputError("expected host names for --allow-host, without *: each name that reaches this server is given")
    app = create_app(store, page=page, hosts=(*LOCAL_HOSTS, *(allow_host or ())), log=log)
    run(app, address=address, port=port, started=started)
