# SPDX-License-Identifier: Apache-2.0
"""The scripts in cshim/adapters import from each other for checkers alone: tools/genadapters leaves these imports out, so no interpreter checks them."""

import ast
import pathlib
import re
from typing import Iterator, List, Set

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
ADAPTERS = TOP / "cshim" / "adapters"


def names(target: ast.AST) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    for part in getattr(target, "elts", ()):
        yield from names(part)


def bindings(path: pathlib.Path) -> Set[str]:
    """What a file defines at its top level, or imports from elsewhere."""
    found: Set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                found.update(names(target))
        elif isinstance(node, (ast.Import, ast.ImportFrom)) and not getattr(node, "level", 0):
            found.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
    return found


def source_of(path: pathlib.Path, node: ast.ImportFrom) -> pathlib.Path:
    module = node.module or ""
    if module == "library":
        return ADAPTERS / "library.pyi"
    return path.parent / (module + ".py") if node.level else TOP / "python" / (module.replace(".", "/") + ".py")


def scripts() -> List[pathlib.Path]:
    return sorted(ADAPTERS.rglob("*.py"))


def test_scripts_are_found() -> None:
    assert len(scripts()) >= 20


@pytest.mark.parametrize("path", scripts(), ids=lambda path: str(path.relative_to(ADAPTERS)))
def test_imports_name_what_is_defined(path: pathlib.Path) -> None:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("memtrace.")):
            missing = {alias.name for alias in node.names} - bindings(source_of(path, node))
            assert not missing, "%s:%d imports what %s does not define" % (path, node.lineno, source_of(path, node))
            assert not any(alias.asname for alias in node.names), "the import is left out: it cannot rename"


def test_the_library_gives_what_its_stub_declares() -> None:
    text = "".join((ADAPTERS / name).read_text() for name in ("pyfunction.c", "snapshot.c", "referrers.c"))
    given = set(re.findall(r'(?:METHOD|NAMED)\("?(\w+)', text)) - {"name", "function"}
    given |= set(re.findall(r'\(struct mt_pymethod\)\{"(\w+)"', text))
    given |= set(re.findall(r'mt_pyscript_add_number\(globals, "(\w+)"', text))
    stub = ADAPTERS / "library.pyi"
    imported = {alias.name for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert bindings(stub) - imported - {"_F"} == given


def test_names_of_one_namespace_are_different() -> None:
    """All files of the search run in one namespace, with what the library gives: a constant of a file took the place of the library's, so that long answers failed."""
    files = [TOP / "python" / "memtrace" / name for name in ("_paths.py", "_freed.py", "_ways.py", "_referrers.py")] + [ADAPTERS / "referrers.py"]
    listed = (TOP / "tools" / "genadapters" / "main.go").read_text()
    assert all(path.name in listed for path in files)
    given = set(re.findall(r"^(?:def )?(\w+)[(:]", (ADAPTERS / "library.pyi").read_text(), re.MULTILINE))
    seen = dict.fromkeys(given, "the library")
    for path in files:
        for name in definitions(path):
            assert name not in seen or name == "TYPE_CHECKING", "%s of %s is also defined by %s" % (name, path.name, seen[name])
            seen[name] = path.name


def definitions(path: pathlib.Path) -> Set[str]:
    imported = {(alias.asname or alias.name).split(".")[0] for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names}
    return bindings(path) - imported
