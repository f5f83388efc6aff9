"""A real Chromium with the page in it, and questions that several tests ask of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from served import served

SETTLED = "(({ moves, settled }) => moves && moves === settled)(document.documentElement.dataset)"


def chromium() -> str:
    """Where Chromium is: as the environment says, or Debian's."""
    found = os.environ.get("TEMPORALDP_CHROMIUM") or shutil.which("chromium")
    assert found, "expected a Chromium: apt-get install chromium, or its path in TEMPORALDP_CHROMIUM"
    return found


@contextmanager
def browsing() -> Iterator[tuple[object, str]]:
    """A browser, and the address of a server of the page."""
    from playwright.sync_api import sync_playwright

    with served() as asking, sync_playwright() as playwright:
        # Chromium refuses its sandbox to root, whose browser these tests are in a container.
        alone = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=chromium(), args=alone)
        try:
            yield browser, f"http://127.0.0.1:{asking.port}/"
        finally:
            browser.close()


class Visit:
    """One page in a context of its own. Whatever a browser complains about fails the test at its end."""

    def __init__(self, browser, address, **how):
        self.address = address
        self.context = browser.new_context(
            **{"viewport": {"width": 1440, "height": 1000}, "accept_downloads": True} | how
        )
        # milliseconds: what the server computes takes seconds, and longer where others use the machine
        self.context.set_default_timeout(120_000)
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        # the browser reports every answer 422, by which the server refuses a matrix or a file, as an error
        wrong = lambda said: said.type == "error" and "status of 422" not in said.text  # noqa: E731
        self.page.on("console", lambda said: self.complaints.append(said.text) if wrong(said) else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, fragment="", address=None):
        """Go there as somebody who follows a link, and wait until all that the browser computes is drawn."""
        self.page.goto("about:blank")
        self.page.goto((address or self.address) + fragment)
        self.settle()
        return self

    def settle(self):
        """Until plans and other chains are drawn for what is shown now."""
        self.page.wait_for_function(f"() => {SETTLED}")

    def wait(self, condition):
        """Until the page says so."""
        self.page.wait_for_function(f"() => {condition}")

    def field(self, name):
        """The number field of a slider."""
        return self.page.locator(f"#control-{name}")

    def set(self, name, value):
        """Type a number."""
        self.field(name).fill(str(value))
        self.settle()

    def choose(self, words):
        """One of several buttons side by side."""
        self.page.locator(".segments label", has_text=words).click()
        self.settle()

    @property
    def worst(self):
        """The number that the page shows largest."""
        return float(self.page.locator(".figure strong").first.inner_text())

    def saved(self, kind, panel=0):
        """The file behind one of the buttons."""
        with self.page.expect_download() as waiting:
            self.page.locator(f'.panel >> nth={panel} >> [data-file="{kind}"]').click()
        return waiting.value.path()

    def close(self):
        """The end: nothing was complained about."""
        self.context.close()
        assert not self.complaints, self.complaints
