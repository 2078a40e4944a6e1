"""What is asked of a model and what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    Attributes:
        role: ``system``, ``user`` or ``assistant``.
        text: what it says.
        stable: number of leading code points that other requests will repeat; a hint for providers
            whose prompt cache wants to be told, 0 for none.
    """

    role: str
    text: str
    stable: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """A call, before it is known whether it must be made.

    Attributes:
        messages: the conversation.
        max_tokens: most tokens the reply may have.
        purpose: what it is for, with its prompt's version; part of the cache's key.
        schema: JSON schema of the reply, sent where the model takes one; None for free text.
        prompt_tokens: estimated tokens of ``messages``, for estimates and limits; not part of the key.
        attempt: which asking of the same text this is, from 0; part of the key, so that asking again is
            not answered with what the cache holds.
        order: smaller goes first when calls wait for each other; not part of the key.
    """

    messages: tuple[Message, ...]
    max_tokens: int
    purpose: str
    schema: Mapping[str, Any] | None = None
    prompt_tokens: int = 0
    attempt: int = 0
    order: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a call as the provider reports them.

    Attributes:
        prompt: tokens of the prompt, cached ones included.
        completion: tokens of the reply.
        cached: prompt tokens that the provider's prompt cache held.
    """

    prompt: int = 0
    completion: int = 0
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply.

    Attributes:
        text: what it said; empty when it refused.
        finish_reason: ``stop``, ``length`` (truncated), ``content_filter``, or another word.
        usage: its tokens.
        cost: US dollars, or None when the price is unknown.
        from_cache: no call was made for it.
        key: its place in the cache.
    """

    text: str
    finish_reason: str
    usage: Usage
    cost: float | None = None
    from_cache: bool = False
    key: bytes = b""

    @property
    def truncated(self) -> bool:
        """Whether the reply ran into its token limit."""
        return self.finish_reason in {"length", "max_tokens"}
