"""Files for browsers: the pages that are served, what they load, and the page as one file that needs no server."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from importlib.resources import files

from temporaldp.publish.report.page import template

MODULES = (
    "words.js", "setting.js", "server.js", "dom.js", "look.js", "chart.js", "heatmap.js", "picture.js", "commands.js",
    "exports.js", "matrix.js", "controls.js", "story.js", "panel.js", "main.js",
)  # fmt: skip
"""Each imports only from those before it."""

MEDIA_TYPES = {"page.css": "text/css", "icon.svg": "image/svg+xml"} | dict.fromkeys(MODULES, "text/javascript")
"""Of each file that the page loads."""


@cache
def text(name: str) -> str:
    """One of the files that pages load."""
    return (files("temporaldp.apps.serve.page") / "static" / name).read_text(encoding="utf-8")


@cache
def front() -> str:
    """The page as served, with links to its files, so that no inline code need be allowed.

    The sample's correlation is a block of JSON, which no browser runs and no policy forbids. Its matrices are stored, as to
    estimate them takes longer than all other work before the first page.
    """
    return template("apps/serve/page/page.html.j2").render(inline=None, sample=json.loads(text("sample.json")))


@cache
def alone() -> str:
    """The page as one file, with a policy that permits only its own code and no requests."""
    style, script = text("page.css"), "\n".join(_closed(text(name)) for name in MODULES)
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    icon = base64.b64encode(text("icon.svg").encode("utf-8")).decode("ascii")
    inline = {"style": style, "script": script, "policy": policy, "icon": icon}
    return template("apps/serve/page/page.html.j2").render(inline=inline, sample=json.loads(text("sample.json")))


def _closed(module: str) -> str:
    """A module's text as an expression that gives what it exports, for a file in which all modules follow one another."""
    bare = re.sub(r"^import [^;]*;\n", "", module, flags=re.MULTILINE)
    names = ", ".join(re.findall(r"^export (?:async )?(?:const|function|class) (\w+)", bare, flags=re.MULTILINE))
    bare = re.sub(r"^export ", "", bare, flags=re.MULTILINE)
    return f"const {{ {names} }} = (() => {{\n{bare}return {{ {names} }};\n}})();"


def _digest(content: str) -> str:
    """Source expression that allows exactly this content in a content security policy."""
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
