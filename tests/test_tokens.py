import os
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.tokens import boundaries, count, counts

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def test_counts_are_tiktokens() -> None:
    """Counts are those of cl100k_base, and text that looks like a special token is text."""
    assert [count(text) for text in ("", "hello world", "<|endoftext|>", "水泵")] == [0, 2, 7, 3]


@given(st.lists(_TEXT, max_size=4))
def test_many_at_once(texts: list[str]) -> None:
    """Counting many texts gives what counting each gives."""
    assert counts(texts) == [count(text) for text in texts]


@given(_TEXT)
def test_boundaries(text: str) -> None:
    """There is a start for each token, ascending, the first at 0."""
    starts = boundaries(text)
    assert len(starts) == count(text)
    assert starts == sorted(starts)
    assert starts[:1] == ([0] if text else [])


def test_no_network_is_needed() -> None:
    """The vocabulary comes from a folder on disk, whatever the environment says of proxies."""
    code = "from mrag_cli.parts.tokens import count; print(count('one two'))"
    environment = {key: value for key, value in os.environ.items() if key != "TIKTOKEN_CACHE_DIR"}
    environment |= {"https_proxy": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert done.stdout == b"2\n"


def test_a_vocabulary_that_is_not_there() -> None:
    """A folder without the vocabulary, and no network, is said with what to do."""
    code = (
        "from mrag_cli.ground.errors import MragError\nfrom mrag_cli.parts.tokens import count\n"
        "try:\n    count('x')\nexcept MragError as error:\n    print(error)"
    )
    environment = {**os.environ, "TIKTOKEN_CACHE_DIR": "/nowhere/at/all", "HTTPS_PROXY": "http://127.0.0.1:9"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert b"cannot be loaded" in done.stdout
    assert b"TIKTOKEN_CACHE_DIR" in done.stdout
