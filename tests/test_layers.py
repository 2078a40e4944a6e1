"""The layout: imports go downward, heavy libraries have one room each, modules stay small."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "mrag_cli"
MODULES = sorted(PACKAGE.rglob("*.py"))
LAYERS = ["ground", "records", "parts", "stages", "cli"]
ROOMS = {
    "typer": ("cli/",),
    "rich": ("cli/",),
    "litellm": ("parts/llm/",),
    "tiktoken": ("parts/tokens.py",),
    "hnswlib": ("parts/store/",),
    "bm25s": ("parts/store/",),
}
NAMELESS = {"util", "utils", "helper", "helpers", "common", "core", "misc", "manager", "base"}


def _name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def _layer(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0]


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{_name(path)} has a relative import"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", [path for path in MODULES if _layer(path) in LAYERS], ids=_name)
def test_imports_go_downward(path: Path) -> None:
    """A module imports from its own layer and those below it; a stage imports no other stage."""
    own = LAYERS.index(_layer(path))
    for imported in _imports(path):
        parts = imported.split(".")
        if parts[0] != "mrag_cli" or len(parts) < 2 or parts[1] not in LAYERS:
            continue
        assert LAYERS.index(parts[1]) <= own, f"{imported} is above {_name(path)}"
        if parts[1] == "stages" and len(parts) > 2 and _layer(path) == "stages":
            family = path.stem.split("_", maxsplit=1)[0]
            assert parts[2].startswith(family), f"{_name(path)} imports another stage, {imported}"


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_heavy_libraries_have_one_room_each(path: Path) -> None:
    """typer, rich, litellm, tiktoken, hnswlib and bm25s are imported only where they belong."""
    for imported in _imports(path):
        rooms = ROOMS.get(imported.split(".")[0])
        if rooms:
            assert _name(path).startswith(rooms), f"{_name(path)} imports {imported}"


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_modules_are_small_and_have_a_room_with_a_name(path: Path) -> None:
    """No module is over 400 lines, and none is called after nothing in particular."""
    assert len(path.read_text("utf-8").splitlines()) <= 400
    assert NAMELESS.isdisjoint({path.stem, *path.parent.parts[-1:]})


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_dataclasses_are_frozen_and_slotted(path: Path) -> None:
    """A data class is frozen and slotted; one that counts or collects is slotted at least."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.ClassDef):
            continue
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Name) and decorator.id == "dataclass":
                pytest.fail(f"{node.name} in {_name(path)} is a bare dataclass")
            if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "dataclass":
                assert "slots" in {keyword.arg for keyword in decorator.keywords}, node.name


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_every_module_has_a_test_of_its_own(path: Path) -> None:
    """Each module with code of its own is tested by the file that carries its name."""
    if path.name.startswith("__") or path.stem in {"models", "layout"}:
        return
    names = {test.stem for test in Path(__file__).parent.glob("test_*.py")}
    candidates = {f"test_{path.stem}", f"test_{path.parent.name}_{path.stem}"}
    assert candidates & names, f"{_name(path)}: none of {sorted(candidates)} exists"


def test_the_top_level_holds_what_was_agreed() -> None:
    """The package's folders are the five layers and nothing else."""
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set(LAYERS)
