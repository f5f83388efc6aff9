"""`temporaldp token`: tokens of a service and their roles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Annotated

import typer

from temporaldp.apps.cli import options as o
from temporaldp.apps.cli.console import console
from temporaldp.apps.cli.render import listing, say_json
from temporaldp.apps.cli.serve import StoreOption
from temporaldp.apps.serve.tokens import Role, Tokens
from temporaldp.base.extras import needing

app = typer.Typer(help="Create, list and revoke the tokens of a service.", no_args_is_help=True, add_completion=False)


@app.command("create")
def create(
    store: StoreOption,
    role: Annotated[
        Role,
        typer.Option("--role", help="Role; each role includes those before it.", show_default=False),
    ],
    release: Annotated[
        str | None,
        typer.Option(
            "--release",
            metavar="ID",
            help="Restrict the token to this release; default: all releases.",
            show_default=False,
        ),
    ] = None,
    days: Annotated[float, typer.Option("--days", help="Days until the token expires.", min=0.001, max=3650.0)] = 90.0,
    note: Annotated[str, typer.Option("--note", help="Note on the holder.")] = "",
) -> None:
    """Create a token and print it once; the database stores only its hash.

    An `own` token for all releases may create releases.
    """
    with _tokens(store, make=True) as tokens:
        typer.echo(tokens.make(release=release, role=role, days=days, note=note))


@app.command("list")
def show(store: StoreOption, as_json: o.JsonOption = False) -> None:
    """List all tokens with their roles and expiry dates."""
    with _tokens(store, make=False) as tokens:
        known = tokens.known()
    for one in known:
        one |= {
            name: datetime.fromtimestamp(one[name], UTC).isoformat(timespec="seconds") for name in ("made", "expires")
        }
    if as_json:
        say_json({"tokens": known})
        return
    listing(
        [
            {
                "token": one["token"],
                "release": one["release"] or "all",
                "role": one["role"],
                "made": one["made"],
                "expires": "revoked" if one["revoked"] else one["expires"],
                "note": one["note"],
            }
            for one in known
        ],
        left=("token", "release", "role", "made", "expires", "note"),
    )


@app.command("revoke")
def revoke(
    store: StoreOption,
    token: Annotated[str, typer.Argument(metavar="NAME", help="The name, from the list.", show_default=False)],
) -> None:
    """Revoke a token with immediate effect."""
    with _tokens(store, make=False) as tokens:
        tokens.revoke(token)
    console.print(f"revoked: {token}", markup=False)


@contextmanager
def _tokens(store: str, *, make: bool) -> Iterator[Tokens]:
    with needing("serve"):
        from temporaldp.apps.serve.service import database_at

    with closing(database_at(store, make=make)) as database:
        yield Tokens(database)
