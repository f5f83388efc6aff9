"""Progress of parts of a computation."""

from __future__ import annotations

from temporaldp.base.progress import part, progressed, watched


def test_the_share_of_a_part_never_falls():
    """A search computes several times: each begins at 0 again."""
    seen = []
    with watched(lambda doing, share: seen.append((doing, round(share, 3)))):
        for first in (0.0, 0.5):
            with part(first, first + 0.5, "all"):
                for share in (0.2, 1.0, 0.1, 0.6):
                    progressed("one", share)
    assert {doing for doing, _ in seen} == {"all"}
    shares = [share for _, share in seen]
    assert shares == sorted(shares)
    assert (shares[0], 0.1 in shares, shares[-1]) == (0.0, True, 1.0)
