"""The files of the page, and the whole page as one file that needs no server."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from importlib.resources import files

STYLES = ("uPlot.min.css", "page.css")
LIBRARY = "uPlot.iife.min.js"
MODULES = (
    "chain.js", "profile.js", "rollouts.js", "exact.js", "budget.js", "words.js", "setting.js", "server.js", "results.js",
    "dom.js", "look.js", "chart.js", "heatmap.js", "drawing.js", "picture.js", "commands.js", "exports.js", "matrix.js",
    "controls.js", "panel.js", "main.js",
)  # fmt: skip
"""Each imports only from those before it."""

ICON = "icon.svg"

FILES = frozenset({*STYLES, LIBRARY, *MODULES, ICON})

MEDIA_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@cache
def text(name: str) -> str:
    """One of the page's files."""
    folder = "vendor" if name.startswith("uPlot") else "static"
    return (files("temporaldp.serve.page") / folder / name).read_text(encoding="utf-8")


@cache
def front() -> str:
    """The page as the server gives it: no script and no style of its own, so that no inline code need ever be allowed."""
    links = "\n".join(f'<link rel="stylesheet" href="/page/{name}">' for name in STYLES)
    links += f'\n<link rel="icon" href="/page/{ICON}">'
    scripts = f'<script defer src="/page/{LIBRARY}"></script>\n<script type="module" src="/page/main.js"></script>'
    return _document(links, scripts, alone=False)


@cache
def alone() -> str:
    """The page as one file: everything in it, and a policy that lets it fetch nothing and run only what is in it."""
    style = "\n".join(map(text, STYLES))
    scripts = [text(LIBRARY), "\n".join(_closed(text(name)) for name in MODULES)]
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {' '.join(map(_digest, scripts))}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    picture = base64.b64encode(text(ICON).encode("utf-8")).decode("ascii")
    links = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
        f'<link rel="icon" href="data:image/svg+xml;base64,{picture}">'
    )
    tags = f'<script>{scripts[0]}</script>\n<script type="module">{scripts[1]}</script>'
    return _document(links, tags, alone=True)


def _document(links: str, scripts: str, *, alone: bool) -> str:
    """`page.html` with its links, its scripts and what they begin with."""
    page = text("page.html")
    marks = {"<!-- styles -->": links, "<!-- scripts -->": scripts, "<!-- setup -->": _setup(alone=alone)}
    for mark, content in marks.items():
        page = page.replace(mark, content, 1)
    return page


def _setup(*, alone: bool) -> str:
    """What the page begins with: the sample's correlation and the sentences that it shares with reports, as JSON.

    A block of data, which no browser runs and no policy forbids. The sample's matrices are written down, since to estimate them
    takes longer than everything else that is done before the first page.
    """
    from temporaldp.report.sentences import PRIORS, TEMPLATES

    known = {
        "alone": alone,
        "sentences": TEMPLATES,
        "priors": PRIORS,
        "sample": json.loads(text("sample.json")),
    }
    return json.dumps(known).replace("<", "\\u003c")


def _closed(module: str) -> str:
    """A module's text as an expression that gives what it exports, for a file in which all modules follow one another."""
    bare = re.sub(r"^import [^;]*;\n", "", module, flags=re.MULTILINE)
    exported = re.findall(r"^export (?:async )?(?:const|function|class) (\w+)", bare, flags=re.MULTILINE)
    bare = re.sub(r"^export ", "", bare, flags=re.MULTILINE)
    names = ", ".join(exported)
    return f"const {{ {names} }} = (() => {{\n{bare}return {{ {names} }};\n}})();"


def _digest(content: str) -> str:
    """What allows exactly this content in a content security policy."""
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
