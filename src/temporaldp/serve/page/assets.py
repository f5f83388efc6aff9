"""The files of the page, and the page as one file that needs no server."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from importlib.resources import files

STYLE, ICON = "page.css", "icon.svg"
MODULES = (
    "words.js", "setting.js", "server.js", "dom.js", "look.js", "chart.js", "heatmap.js", "picture.js", "commands.js",
    "exports.js", "matrix.js", "controls.js", "panel.js", "main.js",
)  # fmt: skip
"""Each imports only from those before it."""

FILES = frozenset({STYLE, ICON, *MODULES})

MEDIA_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@cache
def text(name: str) -> str:
    """One of the page's files."""
    return (files("temporaldp.serve.page") / "static" / name).read_text(encoding="utf-8")


@cache
def front() -> str:
    """The page as served, without inline scripts and styles, so that no inline code need be allowed."""
    links = f'<link rel="stylesheet" href="/page/{STYLE}">\n<link rel="icon" href="/page/{ICON}">'
    return _document(links, '<script type="module" src="/page/main.js"></script>')


@cache
def alone() -> str:
    """The page as one file, with a policy that permits only its own code and no requests."""
    style, script = text(STYLE), "\n".join(_closed(text(name)) for name in MODULES)
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    picture = base64.b64encode(text(ICON).encode("utf-8")).decode("ascii")
    links = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
        f'<link rel="icon" href="data:image/svg+xml;base64,{picture}">'
    )
    return _document(links, f'<script type="module">{script}</script>')


def _document(links: str, scripts: str) -> str:
    """`page.html` with its links, its scripts and its data, a block of JSON, which no browser runs and no policy forbids.

    The data are the sample's correlation. Its matrices are stored, as to estimate them takes longer than all other work before
    the first page.
    """
    page, data = text("page.html"), json.dumps({"sample": json.loads(text("sample.json"))})
    marks = {"<!-- styles -->": links, "<!-- scripts -->": scripts, "<!-- setup -->": data.replace("<", "\\u003c")}
    for mark, content in marks.items():
        page = page.replace(mark, content, 1)
    return page


def _closed(module: str) -> str:
    """A module's text as an expression that gives what it exports, for a file in which all modules follow one another."""
    bare = re.sub(r"^import [^;]*;\n", "", module, flags=re.MULTILINE)
    exported = re.findall(r"^export (?:async )?(?:const|function|class) (\w+)", bare, flags=re.MULTILINE)
    bare = re.sub(r"^export ", "", bare, flags=re.MULTILINE)
    names = ", ".join(exported)
    return f"const {{ {names} }} = (() => {{\n{bare}return {{ {names} }};\n}})();"


def _digest(content: str) -> str:
    """Source expression that allows exactly this content in a content security policy."""
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
