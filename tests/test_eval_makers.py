"""How each system cuts documents."""

import pytest
from heard import Heard

from mrag_cli.cli.eval_makers import CHUNKED, maker
from mrag_cli.parts.sources import Source
from mrag_cli.records.models import DocumentGroup

TEXT = "# Harbour\n\n" + "\n\n".join(
    " ".join(f"Crane {part}{line} lifts {line} tonnes of copper at quay {part}." for line in range(8))
    for part in "abcdefgh"
)
SOURCE = Source("harbour", TEXT, "markdown")


def _group(base: str) -> DocumentGroup:
    heard = Heard()
    (group,) = maker(base, "", None, None, heard).groups([SOURCE])
    assert not heard.failures
    return group


@pytest.mark.parametrize("base", ["mrag", *CHUNKED, "chop"])
def test_every_system_covers_the_document(base: str) -> None:
    """Every word of the document is in some unit, every unit behind some marker, and values are counted."""
    group = _group(base)
    held = {at for unit in group.units for at in range(*unit.span)}
    assert all(at in held for at, sign in enumerate(TEXT) if not sign.isspace())
    assert {pointer for marker in group.markers for pointer in marker.pointers} == {
        unit.unit for unit in group.units
    }
    assert all(marker.tokens for marker in group.markers)


@pytest.mark.parametrize(
    ("base", "limit"), [("fixed", 128), ("overlap", 128), ("naive", 500), ("semantic", 128)]
)
def test_chunks_keep_their_size(base: str, limit: int) -> None:
    """No chunk has more tokens than its system allows, and keys are the chunks themselves."""
    group = _group(base)
    assert max(unit.tokens for unit in group.units) <= limit
    assert all(marker.key == marker.value for marker in group.markers)


def test_dos_has_the_windows_of_fixed() -> None:
    """DOS differs from fixed windows in the order of the context alone."""
    assert [marker.value for marker in _group("dos").markers] == [
        marker.value for marker in _group("fixed").markers
    ]
    assert maker("dos", "", None, None, Heard()).order == "position"


def test_the_settings_tell_systems_apart() -> None:
    """No two systems that cut differently share a kept cell."""
    told = [
        repr(maker(base, "", None, None, Heard()).settings) for base in ("mrag", "fixed", "overlap", "naive")
    ]
    assert len(set(told)) == 4
