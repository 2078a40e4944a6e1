from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mrag_cli.cli.model_options import client, embedders, parameters
from mrag_cli.ground.errors import UsageError
from mrag_cli.parts.embedders import Embedder
from mrag_cli.parts.llm.client import ClientSettings
from mrag_cli.parts.llm.kept_embedder import KeptEmbedder


@dataclass
class Said:
    """A reporter that remembers its notices."""

    notices: list[str] = field(default_factory=list)

    def notice(self, message: str) -> None:
        """Remember a notice."""
        self.notices.append(message)

    def failed(self, name: str, reason: str) -> None:
        """Fail the test."""
        raise AssertionError((name, reason))


def test_parameters_are_json_where_they_can_be() -> None:
    """Numbers, lists and truth values are read as such, the rest is text."""
    given = ["top_p=0.5", "stop=[1]", "user=me", "logit=true", "note=a=b"]
    assert parameters(given) == {"top_p": 0.5, "stop": [1], "user": "me", "logit": True, "note": "a=b"}
    assert parameters(None) == {}


@pytest.mark.parametrize("option", ["api_key=x", "model=x", "max_tokens=5", "stream=true", "=5", "top_p"])
def test_parameters_that_other_options_set_are_refused(option: str) -> None:
    """The message names the way to do it."""
    with pytest.raises(UsageError, match="--param"):
        parameters([option])


def test_an_unknown_model_is_told_once_and_a_known_one_is_not(tmp_path: Path) -> None:
    """Assumed limits are said; what litellm's data has needs no word."""
    said = Said()
    with client(ClientSettings("openai/gpt-4o-mini"), said, cache=tmp_path / "c"):
        assert said.notices == []
    with client(ClientSettings("openai/unheard-of"), said, no_cache=True):
        assert len(said.notices) == 1
    assert "unheard-of" in said.notices[0]


def test_a_cost_limit_needs_a_price(tmp_path: Path) -> None:
    """A limit that cannot be kept is refused, not ignored."""
    with (
        pytest.raises(UsageError, match="--max-calls"),
        client(ClientSettings("openai/unheard-of"), Said(), cache=tmp_path / "c", max_cost=1.0),
    ):
        raise AssertionError("unreachable")
    with client(ClientSettings("openai/gpt-4o-mini"), Said(), no_cache=True, max_cost=1.0) as made:
        assert made.facts.prices is not None


def test_no_cache_touches_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--no-cache neither reads nor makes one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with client(ClientSettings("openai/gpt-4o-mini"), Said(), no_cache=True):
        pass
    assert list(tmp_path.iterdir()) == []
    with client(ClientSettings("openai/gpt-4o-mini"), Said()):
        pass
    assert [path.name for path in tmp_path.rglob("*.sqlite3")] == ["replies.sqlite3"]


def test_an_address_must_be_one() -> None:
    """A host without http:// is refused before anything is opened."""
    with (
        pytest.raises(UsageError, match="http://"),
        client(ClientSettings("openai/m", "localhost:8080"), Said(), no_cache=True),
    ):
        raise AssertionError("unreachable")


def test_an_embedder_that_costs_something_is_kept(tmp_path: Path) -> None:
    """Its vectors go into the cache, which is opened with the first such embedder and not before."""
    with embedders(cache=tmp_path / "cache") as make:
        assert type(make("fastembed:mini")) is type(make("http://127.0.0.1:1/v1")) is Embedder
        assert not (tmp_path / "cache").exists()
        assert type(make("openai/small")) is type(make("http://127.0.0.1:1/v1#small")) is KeptEmbedder
        assert (tmp_path / "cache").exists()


def test_without_a_cache_no_vector_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file is made, nowhere."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with embedders(no_cache=True) as make:
        assert type(make("openai/small")) is Embedder
    assert list(tmp_path.iterdir()) == []
