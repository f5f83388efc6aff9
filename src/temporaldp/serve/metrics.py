"""Numbers for Prometheus. Labels never name a release, a token or a person."""

from __future__ import annotations

from temporaldp.extras import needing

with needing("serve"):
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest


class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        registry = self._registry
        self.requests = Counter(
            "temporaldp_requests",
            "Requests by route, method and status.",
            ["route", "method", "status"],
            registry=registry,
        )
        self.steps = Counter(
            "temporaldp_steps",
            "Steps by kind: taken, repeated or refused.",
            ["kind", "became"],
            registry=registry,
        )
        self.faults = Counter(
            "temporaldp_faults",
            "Requests that failed for no fault of the client, by kind.",
            ["kind"],
            registry=registry,
        )
        self.seconds = Histogram(
            "temporaldp_request_seconds", "Duration of requests by route.", ["route"], registry=registry
        )
        self.open_releases = Gauge(
            "temporaldp_open_releases", "Releases that the server keeps open.", registry=registry
        )

    def text(self) -> bytes:
        """Return all of them in the text format of Prometheus."""
        return generate_latest(self._registry)
