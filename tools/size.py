"""Print the size of the package by wing and room: statements, files, module constants and public names.

A statement is an `ast.stmt` that is neither an import nor a string standing alone (a docstring). A constant is a name in
capitals that is assigned at the top of a module. A public name is one that the folder's `__init__.py` lists in
`__all__`, or the stub beside it imports.
"""

import ast
import sys
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "temporaldp"


def statements(tree):
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.stmt))
    return sum(not isinstance(node, ast.Import | ast.ImportFrom) and not is_string(node) for node in nodes)


def is_string(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def assigned(tree):
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [part for target in targets for part in getattr(target, "elts", [target])]
            yield from ((name.id, node.value) for name in names if isinstance(name, ast.Name))


def public(path, tree):
    if (stub := path.with_suffix(".pyi")).exists():
        return sum(len(node.names) for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ImportFrom))
    return sum(len(value.elts) for name, value in assigned(tree) if name == "__all__" and hasattr(value, "elts"))


def sizes(paths):
    trees = {path: ast.parse(path.read_text()) for path in paths}
    constants = [name for tree in trees.values() for name, _ in assigned(tree) if name.lstrip("_").isupper()]
    names = sum(public(path, tree) for path, tree in trees.items() if path.name == "__init__.py")
    return sum(map(statements, trees.values())), len(trees), len(constants), names


def table(source):
    """A row for each wing and each of its rooms, and sums."""
    folders = [path for path in sorted(source.iterdir()) if path.is_dir() and list(path.rglob("*.py"))]
    own = sizes(sorted(source.glob("*.py")))
    whole = {folder.name: sizes(sorted(folder.rglob("*.py"))) for folder in folders}
    for folder in folders:
        yield folder.name, *whole[folder.name]
        for room in sorted(path for path in folder.iterdir() if path.is_dir() and list(path.rglob("*.py"))):
            yield f"  {room.name}", *sizes(sorted(room.rglob("*.py")))
    if {"base", "data"} <= set(whole):
        yield "base + data", *map(sum, zip(whole["base"], whole["data"], strict=True))
    yield "in all", *map(sum, zip(own, *whole.values(), strict=True))


def main(source):
    print(f"{'folder':18s} {'statements':>10s} {'files':>6s} {'constants':>9s} {'public':>6s}")
    for folder, *numbers in table(source):
        print(f"{folder:18s} {numbers[0]:10,d} {numbers[1]:6d} {numbers[2]:9d} {numbers[3]:6d}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE)
