"""What litellm's own data says of a model: its limits, its prices, whether it takes a JSON schema.

The data is read from litellm's file without importing litellm, which takes seconds and which a dry run or an
OpenAI-compatible server does not need.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mrag_cli.parts.llm.request import Usage

DEFAULT_CONTEXT_TOKENS = 16_384
"""Context assumed of a model that litellm's data does not know."""
DEFAULT_OUTPUT_TOKENS = 4_096
"""Output limit assumed of a model that litellm's data does not know."""
_DATA_FILE = "model_prices_and_context_window_backup.json"


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars a token.

    Attributes:
        prompt: of a prompt token.
        completion: of a reply token.
        cached: of a prompt token that the provider's cache held.
    """

    prompt: float
    completion: float
    cached: float

    def cost(self, usage: Usage) -> float:
        """Return the US dollars of a call."""
        fresh = max(0, usage.prompt - usage.cached)
        return fresh * self.prompt + usage.cached * self.cached + usage.completion * self.completion


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of a model.

    Attributes:
        context_tokens: most tokens of prompt and reply together.
        output_tokens: most tokens of a reply.
        prices: its prices, or None when they are unknown.
        takes_schema: whether it takes ``response_format`` with a JSON schema.
        reasons: whether it spends reply tokens on reasoning before it answers.
        known: whether litellm's data has the model; else the limits are assumptions.
    """

    context_tokens: int = DEFAULT_CONTEXT_TOKENS
    output_tokens: int = DEFAULT_OUTPUT_TOKENS
    prices: Prices | None = None
    takes_schema: bool = False
    reasons: bool = False
    known: bool = False


def facts_of(model: str) -> ModelFacts:
    """Return what litellm's data says of ``model`` (its litellm name, ``provider/name``)."""
    entry = _entry(model)
    if entry is None:
        return ModelFacts()
    context = _count(entry.get("max_input_tokens")) or _count(entry.get("max_tokens"))
    output = _count(entry.get("max_output_tokens")) or _count(entry.get("max_tokens"))
    return ModelFacts(
        context_tokens=context or DEFAULT_CONTEXT_TOKENS,
        output_tokens=min(output or DEFAULT_OUTPUT_TOKENS, context or DEFAULT_CONTEXT_TOKENS),
        prices=_prices(entry),
        takes_schema=bool(entry.get("supports_response_schema")),
        reasons=bool(entry.get("supports_reasoning")),
        known=True,
    )


def _entry(model: str) -> Mapping[str, Any] | None:
    data = _data()
    exact: Mapping[str, Any] | None = data.get(model)
    if exact is not None:
        return exact
    provider, _, name = model.partition("/")
    bare: Mapping[str, Any] | None = data.get(name)
    if bare is not None and str(bare.get("litellm_provider", "")).startswith(provider):
        return bare
    return None


def _prices(entry: Mapping[str, Any]) -> Prices | None:
    prompt, completion = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
    if not isinstance(prompt, int | float) or not isinstance(completion, int | float):
        return None
    cached = entry.get("cache_read_input_token_cost")
    return Prices(
        float(prompt), float(completion), float(cached if isinstance(cached, int | float) else prompt)
    )


def _count(value: object) -> int:
    """Return a positive whole number of the data, else 0; the data has a few limits written as text."""
    if isinstance(value, str) and value.isdigit():
        return int(value)
    return value if isinstance(value, int) and value > 0 else 0


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    spec = find_spec("litellm")
    for location in (spec.submodule_search_locations or []) if spec else []:
        path = Path(location) / _DATA_FILE
        if path.is_file():
            found: dict[str, Any] = orjson.loads(path.read_bytes())
            return found
    return {}
