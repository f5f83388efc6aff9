"""What the page looks like, for README.md and docs/how-to/page.md. Usage: python benchmarks/screenshots.py FOLDER"""

from __future__ import annotations

import sys
from pathlib import Path

from browsing import Visit, browsing

TWO = (
    "#from=sticky&values=5&stays=0.8&epsilon=0.1&horizon=47&alpha=1&b.from=sticky&b.values=5&b.stays=0.95&b.epsilon=0.1"
)
PLANNED = "[...document.querySelectorAll('.plan')].every((plan) => /[Bb]udgets (of|that)/.test(plan.textContent))"
OTHER_CHAINS = "[...document.querySelectorAll('[data-part=sweep]')].every((place) => place.firstChild)"

PICTURES = {
    "page": ("", {"viewport": {"width": 1440, "height": 1130}, "color_scheme": "light"}),
    "page-two": (TWO, {"viewport": {"width": 1440, "height": 1000}, "color_scheme": "dark"}),
}


def main(folder: Path) -> None:
    with browsing() as (browser, address):
        for name, (fragment, how) in PICTURES.items():
            visit = Visit(browser, address, **how).open(fragment)
            visit.wait(PLANNED)
            visit.wait(OTHER_CHAINS)
            visit.page.screenshot(path=folder / f"{name}.png")
            visit.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
