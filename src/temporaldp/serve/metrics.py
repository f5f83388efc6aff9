"""Numbers for Prometheus, as its text format has them. Labels never name a release, a token or a person."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds."""

HELP = {
    "temporaldp_requests_total": "Requests by route, method and status.",
    "temporaldp_steps_total": "Steps by kind (spend, publish) and what became of them (taken, repeated, refused).",
    "temporaldp_faults_total": "Requests that failed for no fault of who asked, by kind.",
    "temporaldp_request_seconds": "How long requests took.",
    "temporaldp_open_releases": "Releases that this server keeps open.",
}


class Metrics:
    """Counters and one histogram, shared by all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: defaultdict[tuple[str, tuple[tuple[str, str], ...]], float] = defaultdict(float)
        self._buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def count(self, name: str, **labels: str) -> None:
        """One more."""
        with self._lock:
            self._counts[name, tuple(sorted(labels.items()))] += 1

    def observe(self, route: str, seconds: float) -> None:
        """How long one request took."""
        with self._lock:
            self._buckets[route][bisect_left(BUCKETS, seconds)] += 1
            self._seconds[route] += seconds

    def text(self, **gauges: float) -> str:
        """All of them, with what stands at a value now."""
        with self._lock:
            lines: dict[str, list[str]] = {name: [] for name in HELP}
            for (name, labels), value in sorted(self._counts.items()):
                lines[name].append(f"{name}{_labels(dict(labels))} {value:g}")
            for route, found in sorted(self._buckets.items()):
                lines["temporaldp_request_seconds"] += _histogram(route, found, self._seconds[route])
        for name, value in gauges.items():
            lines[f"temporaldp_{name}"].append(f"temporaldp_{name} {value:g}")
        return "".join(
            f"# HELP {name} {HELP[name]}\n# TYPE {name} {_kind(name)}\n" + "".join(f"{one}\n" for one in found)
            for name, found in lines.items()
        )


def _histogram(route: str, found: list[int], seconds: float) -> list[str]:
    name, total, lines = "temporaldp_request_seconds", 0, []
    for bound, n in zip((*(f"{one:g}" for one in BUCKETS), "+Inf"), found, strict=True):
        total += n
        lines.append(f"{name}_bucket{_labels({'route': route, 'le': bound})} {total}")
    told = _labels({"route": route})
    return [*lines, f"{name}_sum{told} {seconds:.6f}", f"{name}_count{told} {total}"]


def _kind(name: str) -> str:
    return "counter" if name.endswith("_total") else "histogram" if name.endswith("_seconds") else "gauge"


def _labels(labels: dict[str, str]) -> str:
    inner = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return f"{{{inner}}}" if inner else ""
