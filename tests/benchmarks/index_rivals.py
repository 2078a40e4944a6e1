"""What the index is measured against, each a process of its own: python index_rivals.py NAME ARGUMENT...

A program prints its own figures as one JSON line; what its whole process takes is the caller's to measure.
"""

import json
import sqlite3
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    before = time.process_time()
    found = work()
    return found, time.process_time() - before


def _told(**figures: float) -> None:
    _say(json.dumps(figures))


def _say(found: object) -> None:
    sys.stdout.write(f"{found}\n")


def _keys(markers: int) -> list[str]:
    import synthetic

    found: list[str] = []
    for start in range(0, markers, 5_000):
        found += synthetic.keys(min(5_000, markers - start), 2 + start)
    return found


def stream(path: str, markers: str, name: str = "doc") -> None:
    """Write a synthetic stream."""
    import synthetic

    with Path(path).open("wb") as file:
        file.writelines(synthetic.stream(int(markers), name, 2 if name == "doc" else 7))


def mrag_postings(markers: str) -> None:
    """Build postings from terms that are there."""
    from array import array

    import numpy as np

    from mrag_cli.parts.store.lexical import build
    from mrag_cli.parts.store.manifest import LexicalSettings
    from mrag_cli.parts.terms import terms

    tokens = [terms(key) for key in _keys(int(markers))]

    def work() -> object:
        vocabulary: dict[str, int] = {}
        ids, lengths = array("I"), array("I")
        for own in tokens:
            ids.extend([vocabulary.setdefault(term, len(vocabulary)) for term in own])
            lengths.append(len(own))
        return build(vocabulary, np.array(ids, np.uint32), np.array(lengths, np.uint32), LexicalSettings())

    _told(seconds=_timed(work)[1])


def bm25s_postings(markers: str) -> None:
    """Index the same terms with bm25s."""
    import bm25s

    from mrag_cli.parts.terms import terms

    tokens = [terms(key) for key in _keys(int(markers))]
    engine = bm25s.BM25(k1=0.9, b=0.4)
    _told(seconds=_timed(lambda: engine.index(tokens, show_progress=False))[1])


def bm25s_build(folder: str, markers: str) -> None:
    """Tokenise keys with bm25s's own tokenizer and a stemmer, index and save: what a nightly rebuild does."""
    import bm25s
    import Stemmer

    found = _keys(int(markers))

    def work() -> None:
        tokens = bm25s.tokenize(found, stemmer=Stemmer.Stemmer("english"), show_progress=False)
        engine = bm25s.BM25(k1=0.9, b=0.4)
        engine.index(tokens, show_progress=False)
        engine.save(folder)

    _told(seconds=_timed(work)[1])


def bm25s_query(folder: str, question: str) -> None:
    """Answer one question with bm25s, memory-mapped."""
    import bm25s
    import Stemmer

    engine = bm25s.BM25.load(folder, mmap=True)
    tokens = bm25s.tokenize(
        [question], stemmer=Stemmer.Stemmer("english"), show_progress=False, return_ids=False
    )
    _say(engine.retrieve(tokens, k=10, show_progress=False, n_threads=1).documents)


def fts5_build(path: str, markers: str) -> None:
    """Build a full-text table of SQLite, with its stemmer."""
    found = _keys(int(markers))

    def work() -> None:
        database = sqlite3.connect(path)
        database.execute("create virtual table k using fts5(key, content='', tokenize='porter unicode61')")
        database.executemany("insert into k(rowid, key) values (?, ?)", enumerate(found, 1))
        database.execute("insert into k(k) values ('optimize')")
        database.commit()

    _told(seconds=_timed(work)[1])


def fts5_query(path: str, question: str) -> None:
    """Answer one question with SQLite."""
    words = " OR ".join(f'"{word}"' for word in question.split())
    found = sqlite3.connect(path).execute(
        "select rowid, bm25(k) from k where k match ? order by bm25(k) limit 10", (words,)
    )
    _say(found.fetchall())


def tantivy_build(folder: str, markers: str) -> None:
    """Build an index with tantivy, with its stemmer."""
    import tantivy

    found = _keys(int(markers))
    schema = tantivy.SchemaBuilder().add_text_field("key", tokenizer_name="en_stem").build()

    def work() -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        index = tantivy.Index(schema, folder)
        writer = index.writer(num_threads=1)
        for key in found:
            writer.add_document(tantivy.Document(key=key))
        writer.commit()
        writer.wait_merging_threads()

    _told(seconds=_timed(work)[1])


def tantivy_query(folder: str, question: str) -> None:
    """Answer one question with tantivy."""
    import tantivy

    index = tantivy.Index.open(folder)
    _say(index.searcher().search(index.parse_query(question, ["key"]), 10).hits)


def lexical_batch(index: str, bm25s_folder: str, questions: str) -> None:
    """Rank many questions with both engines in turn, the best 100 of each, and refine mrag's rankings."""
    import bm25s
    import Stemmer

    from mrag_cli.parts.pages import QuestionPages, refined
    from mrag_cli.parts.ranking import Scale, rank_lexical
    from mrag_cli.parts.refine import Steps
    from mrag_cli.parts.store.snapshot import Snapshot

    asked = Path(questions).read_text("utf-8").splitlines()
    engine = bm25s.BM25.load(bm25s_folder, mmap=True)
    tokens = bm25s.tokenize(asked, stemmer=Stemmer.Stemmer("english"), show_progress=False, return_ids=False)
    snapshot = Snapshot.open(Path(index))
    rankings = [(one, rank_lexical(snapshot, one, 160)) for one in asked]

    def refine_all() -> None:
        for one, ranking in rankings:
            refined(ranking, one, QuestionPages(snapshot, one, Scale(1, 0)), Steps(), 160)

    mine = other = more = 9e9
    for _ in range(3):
        mine = min(mine, _timed(lambda: [rank_lexical(snapshot, one, 100) for one in asked])[1])
        more = min(more, _timed(refine_all)[1])
        other = min(
            other,
            _timed(lambda: engine.retrieve(tokens, k=100, show_progress=False, n_threads=1))[1],
        )
    _told(mrag=len(asked) / mine, bm25s=len(asked) / other, refinements=more / len(asked) * 1e3)


def dense_query(vectors: str, dimension: str, url: str = "") -> None:
    """Answer one question from a memory-mapped matrix, its vector a constant or asked of a server."""
    import numpy as np

    matrix = np.memmap(vectors, np.float32, "r").reshape(-1, int(dimension))
    question = np.ones(int(dimension), np.float32)
    if url:
        from urllib.request import Request, urlopen

        body = json.dumps({"input": ["condition flight followers executive"]}).encode()
        with urlopen(Request(f"{url}/v1/embeddings", body, {"Content-Type": "application/json"})) as reply:  # noqa: S310
            question = np.array(json.load(reply)["data"][0]["embedding"], np.float32)
    scores = matrix @ question
    _say(np.argpartition(scores, -10)[-10:])


def dense_batch(index: str, count: str) -> None:
    """Search for many questions with hnswlib directly, and through `Graphs` and `rank_dense`."""
    import hnswlib
    import numpy as np
    import synthetic

    from mrag_cli.parts.ranking import rank_dense
    from mrag_cli.parts.store.graph import DEFAULT_EF, Graphs
    from mrag_cli.parts.store.layout import GRAPH
    from mrag_cli.parts.store.snapshot import Snapshot

    snapshot = Snapshot.open(Path(index))
    segment = max(snapshot.segments, key=lambda own: own.entry.rows.keys)
    dimension = segment.vectors.shape[1]
    asked = synthetic.vectors(int(count), dimension, 5)
    direct = hnswlib.Index(space="ip", dim=dimension)
    direct.load_index(str(segment.folder / GRAPH), max_elements=segment.entry.rows.keys)
    figures: dict[str, float] = {}
    exact = [rank_dense(snapshot, vector, 10)[:10] for vector in islice(asked, 100)]
    for ef in (50, 100, DEFAULT_EF):
        direct.set_ef(ef)
        figures[f"hnswlib ef {ef}"] = len(asked) / min(
            _timed(lambda: direct.knn_query(asked, k=10, num_threads=1))[1] for _ in range(3)
        )
        graphs = Graphs(snapshot, ef, 1)
        graphs.nearest(asked[:1], 10)

        def ranked(graphs: Graphs = graphs) -> list[Any]:
            near = graphs.nearest(asked, 10)
            return [
                rank_dense(
                    snapshot, vector, 10, None, [None if rows is None else rows[number] for rows in near]
                )
                for number, vector in enumerate(asked)
            ]

        figures[f"mrag ef {ef}"] = len(asked) / min(_timed(ranked)[1] for _ in range(3))
        found = ranked()
        figures[f"recall@10 ef {ef}"] = float(
            np.mean([len(set(one) & set(two)) / 10 for one, two in zip(exact, found, strict=False)])
        )
    seconds = min(_timed(lambda: rank_dense(snapshot, asked[0], 10))[1] for _ in range(5))
    figures["exact"] = 1 / seconds
    _told(**figures)


def dense_sizes(index: str, *sizes: str) -> None:
    """Time exact and approximate search of the first vectors of an index, in milliseconds a question."""
    import hnswlib
    import numpy as np
    import synthetic

    from mrag_cli.parts.store.graph import DEFAULT_EF
    from mrag_cli.parts.store.snapshot import Snapshot

    segment = max(Snapshot.open(Path(index)).segments, key=lambda own: own.entry.rows.keys)
    dimension = segment.vectors.shape[1]
    asked = synthetic.vectors(200, dimension, 5)
    figures: dict[str, dict[str, float]] = {}
    for size in map(int, sizes):
        vectors = np.array(segment.vectors[:size])
        graph = hnswlib.Index(space="ip", dim=dimension)
        graph.init_index(size, M=16, ef_construction=200, random_seed=100)
        _, building = _timed(lambda graph=graph, vectors=vectors: graph.add_items(vectors, num_threads=1))
        graph.set_ef(DEFAULT_EF)

        def exact(vectors: Any = vectors) -> list[Any]:
            return [np.argpartition(vectors @ one, -10)[-10:] for one in asked]

        def near(graph: Any = graph) -> Any:
            return graph.knn_query(asked, k=10, num_threads=1)[0]

        half = vectors.astype(np.float16).astype(np.float32)
        own = [set(rows.tolist()) for rows in exact()]
        figures[f"{size:,}"] = {
            "exact": min(_timed(exact)[1] for _ in range(3)) * 5,
            "graph": min(_timed(near)[1] for _ in range(3)) * 5,
            "build": building,
            "recall": float(
                np.mean([len(one & set(two)) / 10 for one, two in zip(own, near(), strict=True)])
            ),
            "half": float(
                np.mean(
                    [len(one & set(two.tolist())) / 10 for one, two in zip(own, exact(half), strict=True)]
                )
            ),
        }
    _say(json.dumps(figures))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
