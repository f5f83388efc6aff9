"""What a server is started with."""

from __future__ import annotations

from dataclasses import dataclass

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
"""Names of this machine that no other machine's name service resolves."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a server is started with.

    Parameters
    ----------
    store : str or None
        Where releases are kept: an SQLite file or a ``postgresql://`` URL. None: there is no service, only the page.
    page : bool
        Whether the page is served beside a service, to browsers that show a token. Without a service it is always there.
    hosts : tuple of str
        The names, without ports, by which the server may be asked. Others are refused, so that a foreign name that was made to
        point here (DNS rebinding) reaches nothing.
    """

    store: str | None = None
    page: bool = False
    hosts: tuple[str, ...] = LOCAL_HOSTS
    log: bool = False
    patience: float = 10.0

    @property
    def has_page(self) -> bool:
        """Whether the page is served."""
        return self.page or self.store is None
