"""Install this checkout, editable, with the extras that are named, at the versions of constraints.txt.

By uv, which takes seconds and compares hashes; by pip where uv cannot be had or cannot reach the index that pip is set to.
Run with:  .venv/bin/python tools/install.py cli
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
PIP = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
UV = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable]


def requirements(extras: list[str]) -> list[str]:
    """What the extras need beside this package, also by the extras that they name, and what an editable install needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    known = project["project"]["optional-dependencies"]
    found, left = ["hatchling", "editables", *project["project"]["dependencies"]], list(extras)
    for extra in left:  # grows while it is read
        for one in known[extra]:
            own = re.fullmatch(rf"{project['project']['name']}\[(.*)\]", one)
            if own:
                left += [name for name in own[1].split(",") if name not in left]
            else:
                found.append(one)
    return list(dict.fromkeys(found))


def main(extras: list[str]) -> None:
    pins = CONSTRAINTS.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        wanted, uv, plain = (Path(folder) / name for name in ("wanted.txt", "uv.txt", "plain.txt"))
        wanted.write_text("\n".join(requirements(extras)), encoding="utf-8")
        # pip refuses hashes of constraints where a requirement has no version of its own
        plain.write_text(re.sub(r" \\\n    --hash=\S+", "", pins), encoding="utf-8")
        uv.write_text(re.search(r"^uv==(?:.*\\\n)*.*", pins, re.MULTILINE)[0], encoding="utf-8")  # type: ignore[index]
        if importlib.util.find_spec("uv") is None:
            subprocess.run([*PIP, "--require-hashes", "--requirement", str(uv)], check=False, stderr=subprocess.DEVNULL)
        # The package itself without a build environment of its own, which would need the index again
        own = ["--no-deps", "--no-build-isolation", "--editable", str(ROOT)]
        for asked in (["--requirement", str(wanted)], own):
            by_uv = [*UV, *asked, "--constraint", str(CONSTRAINTS)]  # with their hashes
            if subprocess.run(by_uv, check=False, stderr=subprocess.DEVNULL).returncode:
                subprocess.run([*PIP, *asked, "--constraint", str(plain)], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
