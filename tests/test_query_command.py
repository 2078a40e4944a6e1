"""`mrag query` as it is called: its options, its outputs, and the embedder it needs."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from command import run
from embedding_server import Given, Post, faithful, rows, serving
from kb import Entry, build, files_of, group, mrag, stream_file

from mrag_cli.cli.query_command import Fusion, Order, Refinement, Retriever
from mrag_cli.parts.refine import Steps

GROUPS = [
    group(
        "notes/birds.md",
        [
            Entry("Where do grey herons nest?", "Grey herons nest high in trees."),
            Entry("What do grey herons eat?", "Grey herons eat fish.", ("diet of herons",)),
        ],
        {"year": 2024},
    ),
    group("notes/otters.md", [("Where do otters live?", "Otters live in a holt.")], {"year": 2025}),
]


@pytest.fixture(scope="module")
def lexical(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index without vectors."""
    directory = tmp_path_factory.mktemp("query") / "kb"
    build(directory, GROUPS)
    return directory


def asked(*arguments: object, **options: Any) -> dict[str, Any]:
    """Return the JSON of a query."""
    found: dict[str, Any] = json.loads(run("query", *arguments, "--json", **options).stdout)
    return found


def values(result: dict[str, Any]) -> list[str]:
    """Return the values of the hits, best first."""
    return [hit["value"] for hit in result["hits"]]


def test_a_pipe_gets_the_bare_context(lexical: Path) -> None:
    """Values alone go to standard output; the question may come from a pipe."""
    named = run("query", lexical, "grey herons nest").stdout
    assert named.splitlines()[0] == "Grey herons nest high in trees."
    assert run("query", lexical, given="  grey herons nest\n").stdout == named


def test_json_holds_what_was_found_and_why(lexical: Path) -> None:
    """One object with question, budget, context and hits; --explain adds scores and reasons."""
    found = asked(lexical, "herons", "--budget", "5", "--explain")
    assert (found["question"], found["retriever"], found["budget"], found["generation"]) == (
        "herons",
        "bm25",
        5,
        1,
    )
    assert found["tokens"] <= 5
    assert [hit["rank"] for hit in found["hits"]] == [1, 2]
    assert {hit["doc"] for hit in found["hits"]} == {"notes/birds.md"}
    explained = found["hits"][0]["explain"]
    assert explained["bm25"] > 0
    assert explained["cosine"] is None
    assert "explain" not in asked(lexical, "herons")["hits"][0]
    assert json.loads(run("query", lexical, "herons", "--explain").stdout)["hits"] != []


def test_filters_order_and_top_k(lexical: Path) -> None:
    """--doc and --where narrow, --top-k lists so many, --order position follows the document."""
    question = "where do herons or otters live, and what do they eat"
    assert values(asked(lexical, question, "--doc", "*/otters.md")) == ["Otters live in a holt."]
    assert values(asked(lexical, question, "--where", "year=2025")) == ["Otters live in a holt."]
    assert len(values(asked(lexical, question, "--top-k", "1"))) == 1
    eaten = run("query", lexical, "grey herons eat", "--order", "position").stdout
    assert eaten == "Grey herons nest high in trees.\n\nGrey herons eat fish.\n"


def test_paper_is_the_plan_without_refinements(lexical: Path) -> None:
    """--paper equals every refinement left out, with the paper's packing."""
    question = "What do grey herons eat?"
    without = [part for name in Refinement for part in ("--without", name.value)]
    plain = asked(lexical, question, *without, "--strict-prefix", "--explain")
    paper = asked(lexical, question, "--paper", "--explain")
    assert paper == plain
    assert all(not hit["explain"]["refinements"] for hit in paper["hits"])


def test_the_refinements_to_leave_out_are_those_there_are() -> None:
    """--without offers each step, and no other."""
    assert [name.value for name in Refinement] == list(Steps.__dataclass_fields__)
    assert [name.value for name in Retriever] == ["bm25", "dense", "hybrid"]
    assert [name.value for name in Fusion] == ["sum", "rrf"]
    assert [name.value for name in Order] == ["similarity", "position"]


def test_nothing_found_is_said_and_no_error(lexical: Path) -> None:
    """An empty context, no hits, a notice; --quiet silences the notice."""
    done = run("query", lexical, "zebra")
    assert (done.stdout, done.stderr) == ("", "mrag: nothing found\n")
    assert asked(lexical, "")["hits"] == []
    assert run("query", lexical, "zebra", "-q").stderr == ""


def test_a_batch_is_answered_in_order(lexical: Path, tmp_path: Path) -> None:
    """More questions than are searched for together, each with its id, equal to asking one by one."""
    lines = [{"id": n, "question": ["herons", "otters", "", "zebra"][n % 4]} for n in range(70)]
    batch = tmp_path / "batch"
    batch.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = [json.loads(line) for line in run("query", lexical, "--batch", batch).stdout.splitlines()]
    assert [(one["id"], one["question"]) for one in found] == [(n["id"], n["question"]) for n in lines]
    for one in found[:4]:
        alone = asked(lexical, one["question"])
        assert {name: one[name] for name in alone} == alone


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "not JSON"),
        ('{"id": 1}', '"question" is missing'),
        ('{"question": 3}', '"question"'),
        ("[]", "object"),
    ],
)
def test_a_malformed_batch_names_its_line(lexical: Path, tmp_path: Path, line: str, said: str) -> None:
    """What came before is answered; the line is named, exit code 4."""
    batch = tmp_path / "batch"
    batch.write_text('{"question": "herons"}\n' + line + "\n")
    done = run("query", lexical, "--batch", batch, code=4)
    assert f"{batch}:2: " in done.stderr
    assert said in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("x", "--exact", "--ef", "9"), "exclude each other"),
        (("x", "--batch", "b"), "exclude each other"),
        (("--batch", "/nowhere"), "cannot be read"),
        (("x", "--retriever", "dense"), "has no vectors"),
        (("x", "--retriever", "hybrid"), "has no vectors"),
        (("x", "--embedder", "openai/small"), "has no vectors"),
        (("x", "--answer"), "--model"),
        (("x", "--where", "year"), "name=value"),
        (("x", "--budget", "-1"), "--budget"),
        (("x", "--top-k", "0"), "--top-k"),
        (("x", "--without", "magic"), "--without"),
        (("x", "--order", "random"), "--order"),
    ],
)
def test_options_that_make_no_sense(lexical: Path, options: tuple[str, ...], said: str) -> None:
    """Exit code 2, with the option named."""
    assert said in run("query", lexical, *options, code=2).output


def test_a_question_of_any_bytes(lexical: Path) -> None:
    """What is no Unicode is asked as U+FFFD; the rest of the question counts."""
    strange = os.fsdecode(b"herons \xff")
    for found in (asked(lexical, strange), asked(lexical, given=b"herons \xff")):
        assert found["question"] == "herons \ufffd"
        assert len(found["hits"]) == 2


def dense(tmp_path: Path, spec: str) -> Path:
    """Make an index with vectors."""
    stream = stream_file(tmp_path / "stream", GROUPS)
    run("index", stream, "-o", tmp_path / "kb", "--embedder", spec, "--no-cache")
    return tmp_path / "kb"


def test_a_query_embeds_with_the_index_s_own_embedder(tmp_path: Path) -> None:
    """Without --embedder the manifest's is asked, wherever the same model is with it; never for bm25."""
    with serving() as (url, posts):
        kb = dense(tmp_path, f"{url}/v1#hash")
        posts.clear()
        own = asked(kb, "grey herons", "--explain")
        assert [post.texts for post in posts] == [["grey herons"]]
        assert own["retriever"] == "hybrid"
        assert own["hits"][0]["explain"]["cosine"] > 0
        ranked = asked(kb, "grey herons", "--retriever", "dense")
        assert len(ranked["hits"]) == 3
        asked(kb, "grey herons", "--fusion", "rrf")
        posts.clear()
        asked(kb, "grey herons", "--retriever", "bm25")
        asked(kb, "   ")
        assert posts == []
        with serving() as (other, elsewhere):
            moved = asked(kb, "grey herons", "--explain", "--embedder", f"{other}/v2#hash")
            assert len(elsewhere) == 1
        assert moved == own


def test_a_batch_is_embedded_together(tmp_path: Path) -> None:
    """The questions of a file go to the embedder in one request, empty ones left out."""
    batch = tmp_path / "batch"
    batch.write_text("".join(json.dumps({"question": text}) + "\n" for text in ("herons", "", "otters")))
    with serving() as (url, posts):
        kb = dense(tmp_path, f"{url}#hash")
        posts.clear()
        done = run("query", kb, "--batch", batch, "--exact")
    assert [post.texts for post in posts] == [["herons", "otters"]]
    assert [len(json.loads(line)["hits"]) for line in done.stdout.splitlines()] == [3, 0, 3]


def test_another_model_is_refused(tmp_path: Path) -> None:
    """Another name ends with 12 before anything is sent; other dimensions under the same name do too."""
    short = [False]

    def script(post: Post, number: int) -> Given:
        return Given(rows([[1.0, 2.0]])) if short[0] else faithful(post, number)

    with serving(script) as (url, posts):
        kb = dense(tmp_path, f"{url}#hash")
        posts.clear()
        for wrong in (f"{url}#other", url, "openai/hash", "fastembed:hash"):
            assert "leave --embedder out" in run("query", kb, "x", "--embedder", wrong, code=12).stderr
        assert posts == []
        short[0] = True
        assert "2 dimensions" in run("query", kb, "x", code=12).stderr


def test_an_embedder_that_is_down_is_named_and_words_still_work(tmp_path: Path) -> None:
    """Exit code 20 with the address; --retriever bm25 answers without it, and the index is untouched."""
    with serving() as (url, _):
        kb = dense(tmp_path, f"{url}#hash")
    before = {name: (kb / name).read_bytes() for name in files_of(kb)}
    with serving(lambda *_: Given({"error": "no"}, 401)) as (broken, _):
        done = run("query", kb, "herons", "--embedder", f"{broken}#hash", code=20)
    assert broken in done.stderr
    assert "MRAG_EMBEDDER_KEY" in done.stderr
    assert "herons" in run("query", kb, "herons", "--retriever", "bm25").stdout
    assert before == {name: (kb / name).read_bytes() for name in files_of(kb)}


def test_the_real_command_from_documents_to_a_dense_answer(tmp_path: Path) -> None:
    """Index, query and update in processes of their own, against a server."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MRAG_")}
    environment["MRAG_CACHE"] = str(tmp_path / "cache")

    def mrag_run(*arguments: object) -> tuple[int, str, str]:
        done = mrag(*arguments, env=environment)
        return done.returncode, done.stdout, done.stderr

    kb = tmp_path / "kb"
    with serving() as (url, _):
        first = stream_file(tmp_path / "first", GROUPS[:1])
        assert mrag_run("index", first, "-o", kb, "--embedder", f"{url}#hash")[0] == 0
        assert mrag_run("update", kb, stream_file(tmp_path / "second", GROUPS[1:]))[0] == 0
        code, context, _ = mrag_run(
            "query", kb, "Where do otters live?", "--retriever", "dense", "--top-k", "1"
        )
        assert (code, context) == (0, "Otters live in a holt.\n")
