from mrag_cli.parts.llm.facts import DEFAULT_CONTEXT_TOKENS, facts_of
from mrag_cli.parts.llm.request import Usage


def test_a_known_model_brings_its_limits_prices_and_schema_support() -> None:
    """Litellm's data is found under the model's litellm name."""
    facts = facts_of("openai/gpt-4o-mini")
    assert facts.known
    assert facts.takes_schema
    assert facts.context_tokens == 128_000
    assert facts.output_tokens == 16_384
    assert facts.prices is not None
    assert 0 < facts.prices.cached < facts.prices.prompt < facts.prices.completion


def test_an_unknown_model_has_assumed_limits_and_no_price() -> None:
    """An unknown price is None, never 0."""
    facts = facts_of("openai/no-such-model")
    assert not facts.known
    assert facts.prices is None
    assert not facts.takes_schema
    assert facts.context_tokens == DEFAULT_CONTEXT_TOKENS


def test_a_name_of_another_provider_lends_its_data_to_nobody() -> None:
    """The part after the slash counts only when the provider is the same."""
    assert facts_of("anthropic/claude-haiku-4-5").known
    assert not facts_of("hosted_vllm/gpt-4o-mini").known


def test_cost_counts_cached_prompt_tokens_at_their_own_price() -> None:
    """A call's cost is what litellm's data makes of its tokens."""
    prices = facts_of("openai/gpt-4o-mini").prices
    assert prices is not None
    full = prices.cost(Usage(prompt=1000, completion=100))
    half = prices.cost(Usage(prompt=1000, completion=100, cached=1000))
    assert full == 1000 * prices.prompt + 100 * prices.completion
    assert half == 1000 * prices.cached + 100 * prices.completion


def test_a_model_that_reasons_is_known_to() -> None:
    """Replies of models that reason need room for it."""
    assert facts_of("openai/o3-mini").reasons
    assert not facts_of("openai/gpt-4o-mini").reasons
