"""Print the size of the package per folder: statements, files, module constants and public names.

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


def rows(source):
    for folder in sorted({path.relative_to(source).parts[0] for path in source.rglob("*.py")}):
        paths = [source / folder] if folder.endswith(".py") else sorted((source / folder).rglob("*.py"))
        trees = {path: ast.parse(path.read_text()) for path in paths}
        constants = [name for tree in trees.values() for name, _ in assigned(tree) if name.lstrip("_").isupper()]
        names = sum(public(path, tree) for path, tree in trees.items() if path.parent in (source, source / folder))
        yield folder, sum(map(statements, trees.values())), len(trees), len(constants), names


def main(source):
    table = list(rows(source))
    table.append(("in all", *(sum(row[k] for row in table) for k in range(1, 5))))
    print(f"{'folder':16s} {'statements':>10s} {'files':>6s} {'constants':>9s} {'public':>6s}")
    for folder, *numbers in table:
        print(f"{folder:16s} {numbers[0]:10,d} {numbers[1]:6d} {numbers[2]:9d} {numbers[3]:6d}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE)
