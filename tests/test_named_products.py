from pathlib import Path

import kb
from kb import Silent

from mrag_cli.parts.chop.product import DENSE_BONUS, id_term
from mrag_cli.parts.named_products import bonus, named_products
from mrag_cli.parts.store.manifest import LexicalSettings
from mrag_cli.parts.store.segment_writer import SegmentSettings
from mrag_cli.parts.store.snapshot import Snapshot
from mrag_cli.stages.index import IndexSettings, build_index

X10, X20 = id_term("Orla X10"), id_term("Orla X20")


def opened(directory: Path, **keys: str) -> Snapshot:
    """Return an index with one document a key."""
    groups = [kb.group(doc, [(key, f"the value of {doc}")]) for doc, key in keys.items()]
    build_index(groups, directory, IndexSettings(SegmentSettings(LexicalSettings())), Silent())
    return Snapshot.open(directory)


def test_the_products_of_an_index_are_recognised(tmp_path: Path) -> None:
    """A question's product is found among the ids that live keys hold, and its keys gain the bonus."""
    snapshot = opened(tmp_path / "kb", a=f"{X10} lamp", b=f"{X20} lamp", c="lamp zebra")
    assert named_products(snapshot, "X10: which lamp?") == (X10,)
    assert named_products(snapshot, "is the X20 brighter than the Orla X10?") == (X20, X10)
    assert named_products(snapshot, "which lamp?") == ()
    gains = bonus(snapshot.segments[0], (X10,))
    assert sorted(gains.tolist()) == [0.0, 0.0, float(gains.max())]
    assert abs(gains.max() - DENSE_BONUS) < 1e-6


def test_an_index_without_ids_names_none(tmp_path: Path) -> None:
    """Where no key holds an id, and where there is no key, nothing is named."""
    assert named_products(opened(tmp_path / "kb", a="the Orla X10"), "X10: why?") == ()
    assert named_products(opened(tmp_path / "empty"), "X10: why?") == ()
