import copy
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kb import build, group, mrag, update

from mrag_cli.ground.errors import IndexCorrupt, IndexMissing, IndexUnsupported
from mrag_cli.parts.store.manifest import Manifest, plain, read_manifest
from mrag_cli.parts.store.snapshot import Snapshot
from mrag_cli.records.models import Deletion

REFUSED = (IndexCorrupt, IndexUnsupported)


def write(directory: Path, value: Any) -> None:
    """Write a manifest with a checksum that is right."""
    value = {name: entry for name, entry in value.items() if name != "checksum"}
    body = json.dumps(value, indent=2).encode().removesuffix(b"\n}")
    (directory / "manifest.json").write_bytes(b'%s,\n  "checksum": "%08x"\n}\n' % (body, zlib.crc32(body)))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with vectors, two segments and dead rows."""
    directory = tmp_path_factory.mktemp("manifest") / "kb"
    kept = [group("a", [("lamp", "one")]), group("d", [("lamp", "four")]), group("e", [("lamp", "five")])]
    build(directory, [*kept, group("b", [("kelp", "two")])], dense=True)
    update(directory, [group("c", [("valve", "three")]), Deletion("b")])
    return directory


@pytest.fixture(scope="module")
def value(index: Path) -> dict[str, Any]:
    """The manifest's JSON."""
    found: dict[str, Any] = json.loads((index / "manifest.json").read_bytes())
    return found


def test_what_is_written_is_read(index: Path, value: dict[str, Any]) -> None:
    """A manifest reads as it was written, and its JSON is the manifest and a checksum."""
    manifest = read_manifest(index)
    assert manifest.dumps() == (index / "manifest.json").read_bytes()
    assert {**plain(manifest), "checksum": value["checksum"]} == value
    assert manifest.segments[0].live("documents") == 3
    assert manifest.segments[0].rows.documents == 4


def test_no_index(tmp_path: Path) -> None:
    """A folder without a manifest, no folder, and a file are no index."""
    (tmp_path / "file").write_text("x")
    for place in (tmp_path, tmp_path / "none", tmp_path / "file"):
        with pytest.raises(IndexMissing, match="no index there"):
            read_manifest(place)


def test_other_formats_are_refused(tmp_path: Path, value: dict[str, Any]) -> None:
    """A newer format says that mrag must be updated, an older one that the index must be built again."""
    for number, hint in ((2, "update mrag"), (0, "build the index again")):
        write(tmp_path, {"format": number, "anything": "else"})
        with pytest.raises(IndexUnsupported, match=hint):
            read_manifest(tmp_path)
        assert mrag("query", tmp_path, "lamp").returncode == 12
    assert value["format"] == 1


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a name that leaves": lambda own: own["segments"][0].update(name="../../etc"),
    "an absolute name": lambda own: own["segments"][0].update(name="/etc"),
    "a name with zeros": lambda own: own["segments"][0].update(name="01"),
    "a file that leaves": lambda own: own["segments"][0]["files"].update(
        {"../x": {"size": 1, "sha256": "0" * 64}}
    ),
    "dead rows that leave": lambda own: own["segments"][0]["dead"].update(name="../1/1.dead"),
    "dead rows of another": lambda own: own["segments"][0]["dead"].update(name="2/2.dead"),
    "more dead than rows": lambda own: own["segments"][0]["dead"].update(keys=9),
    "more dead documents than bytes": lambda own: own["segments"][0]["dead"].update(documents=2),
    "a segment twice": lambda own: own["segments"].append(own["segments"][0]),
    "a missing file": lambda own: own["segments"][0]["files"].pop("arrays"),
    "no vectors": lambda own: own["segments"][0]["files"].pop("vectors"),
    "absurd rows": lambda own: own["segments"][0]["rows"].update(documents=1 << 40),
    "many keys": lambda own: own["segments"][0]["rows"].update(keys=(1 << 32) - 1),
    "negative rows": lambda own: own["segments"][0]["rows"].update(markers=-1),
    "true rows": lambda own: own["segments"][0]["rows"].update(markers=True),
    "other rows": lambda own: own["segments"][0]["rows"].update(terms=9),
    "an absurd size": lambda own: own["segments"][0]["files"]["arrays"].update(size=1 << 62),
    "a digest": lambda own: own["segments"][0]["files"]["arrays"].update(sha256="x"),
    "an absurd dimension": lambda own: own["embedder"].update(dimension=1 << 30),
    "a dimension of 0": lambda own: own["embedder"].update(dimension=0),
    "an unknown type": lambda own: own["embedder"].update(dtype="O"),
    "a metric": lambda own: own["embedder"].update(metric="l2"),
    "origins": lambda own: own["segments"][0].update(origins={"llm": 7}),
    "k1": lambda own: own["lexical"].update(k1=-1),
    "a pivot of 0": lambda own: own["lexical"].update(pivot=0),
    "a huge pivot": lambda own: own["lexical"].update(pivot=10**400),
    "text for a number": lambda own: own["lexical"].update(b="0.4"),
    "an absurd generation": lambda own: own.update(generation=1 << 60),
    "an old generation": lambda own: own.update(generation=1),
    "no generation": lambda own: own.pop("generation"),
    "a list": lambda own: own.update(segments={}),
    "nothing": lambda own: own.clear(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_hostile_manifests_are_refused(
    tmp_path: Path, index: Path, value: dict[str, Any], change: str
) -> None:
    """Names that leave the directory and numbers that cannot be are refused."""
    changed = copy.deepcopy(value)
    CHANGES[change](changed)
    (tmp_path / "segments").symlink_to(index / "segments")
    write(tmp_path, changed)
    with pytest.raises(IndexCorrupt, match=r"manifest\.json"):
        read_manifest(tmp_path)


def test_other_terms_and_encodings_are_refused(tmp_path: Path, value: dict[str, Any]) -> None:
    """An index whose terms or tokens this version does not know is refused with what to do."""
    for change in ({"terms": 99}, {"encoding": "o200k_base"}):
        write(tmp_path, {**value, **change})
        with pytest.raises(IndexUnsupported, match="build the index again"):
            Snapshot.open(tmp_path)


def test_a_changed_byte_is_seen(tmp_path: Path, index: Path) -> None:
    """Any changed byte of a manifest is refused."""
    raw = (index / "manifest.json").read_bytes()
    for place in range(0, len(raw), 7):
        changed = bytearray(raw)
        changed[place] ^= 1
        (tmp_path / "manifest.json").write_bytes(changed)
        with pytest.raises(REFUSED):
            read_manifest(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"[" * 100_000, b"{}", b"1", b'"x"', b"\xff", b'{"format":true}', b"null"]
)
def test_what_is_no_manifest(tmp_path: Path, content: bytes) -> None:
    """Any other content is refused."""
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(IndexCorrupt):
        read_manifest(tmp_path)


def test_what_is_no_file(tmp_path: Path) -> None:
    """A pipe, a folder, a link and a file of many megabytes are refused, without reading them."""
    place = tmp_path / "manifest.json"
    os.mkfifo(place)
    with pytest.raises(IndexCorrupt):
        read_manifest(tmp_path)
    place.unlink()
    place.mkdir()
    with pytest.raises(IndexCorrupt):
        read_manifest(tmp_path)
    place.rmdir()
    place.symlink_to("/dev/zero")
    with pytest.raises(IndexCorrupt):
        read_manifest(tmp_path)
    place.unlink()
    with place.open("wb") as file:
        file.truncate(1 << 33)
    with pytest.raises(IndexCorrupt):
        read_manifest(tmp_path)


JSON = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just([]) | st.just({})
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for name, entry in inner for place in _places(entry, (*path, name)))]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_wrong_value_is_refused_or_harmless(
    tmp_path: Path, index: Path, value: dict[str, Any], data: st.DataObject
) -> None:
    """Whatever stands in a manifest, opening gives a snapshot or one of the two errors, no other."""
    changed = copy.deepcopy(value)
    path = data.draw(st.sampled_from([place for place in _places(value) if place]))
    holder = changed
    for name in path[:-1]:
        holder = holder[name]
    if data.draw(st.booleans()):
        holder[path[-1]] = data.draw(JSON)
    elif isinstance(holder, dict):
        del holder[path[-1]]
    (index / "manifest.json").rename(tmp_path / "kept")
    try:
        write(index, changed)
        manifest = read_manifest(index)
        assert isinstance(manifest, Manifest)
        Snapshot.open(index)
    except REFUSED:
        pass
    finally:
        (tmp_path / "kept").replace(index / "manifest.json")
