"""Labels of steps: how far one may be ahead of the clock."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from temporaldp.data.tables.moments import is_near


@pytest.mark.parametrize(
    ("step", "before", "label", "now", "near"),
    [
        ("1 months", "2024-01-01", "2024-02-01", "2024-01-02T09:00", True),
        ("3 months", "2024-01-01", "2024-04-01", "2024-01-03T00:00", True),
        ("12 months", "2024-01-01", "2025-01-01", "2024-01-10T00:00", True),
        ("1 months", "2024-02-01", "2024-04-01", "2024-01-25T00:00", False),
        ("86400 seconds", "2024-01-10", "2024-01-11", "2024-01-05T00:00", False),
        ("86400 seconds", "2024-01-04", "2024-01-06", "2024-01-05T00:00", True),
        ("300 seconds", None, "2024-01-05T00:05Z", "2024-01-05T00:00", True),
        ("300 seconds", None, "2024-01-05T00:11Z", "2024-01-05T00:00", False),
        (None, "3", "4", "2024-01-05T00:00", True),
        (None, "3", "5", "2024-01-05T00:00", False),
    ],
)
def test_label_may_be_at_most_one_step_ahead_of_the_clock(step, before, label, now, near):
    assert is_near(step, before, label, datetime.fromisoformat(now).replace(tzinfo=UTC)) is near
