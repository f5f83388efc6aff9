"""Databases for services, and tokens for them."""

from __future__ import annotations

import uuid

import postgres
from temporaldp.apps.serve.service import database_at
from temporaldp.apps.serve.tokens import Role, Tokens


def place_of(kind, folder, request):
    """Where a service can keep its releases: a file, or a database on a real server."""
    if kind == "sqlite":
        return str(folder / "service.db")
    return postgres.create_database(request.getfixturevalue("postgres_server"), f"service_{uuid.uuid4().hex}")


def token_for(store, release=None, role=Role.OWN, days=1.0):
    """A token, made as the command line makes them."""
    database = database_at(store)
    try:
        return Tokens(database).make(release=release, role=role, days=days)
    finally:
        database.close()
