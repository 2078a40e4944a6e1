"""LightRAG (`lightrag-hku`) as a system: its own insertion and retrieval, with our model and budget.

Its graph and its chunks are kept in its default stores, in a temporary folder. What it retrieves in its
``mix`` mode is packed in its own proportions: of its default 30,000 tokens, 6,000 are for entities, 8,000 for
relations, and the rest is for chunks.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mrag_cli.ground.errors import ModelError, UsageError
from mrag_cli.parts import tokens
from mrag_cli.parts.evaluation.systems import Found, OpenIndex, Spent, System
from mrag_cli.parts.llm.failures import CallFailed
from mrag_cli.parts.llm.request import Message, Request
from mrag_cli.parts.packing import Evidence, Packed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray

    from mrag_cli.parts.evaluation.systems import Collection, Plan
    from mrag_cli.parts.evaluation.vectors import KeptVectors
    from mrag_cli.parts.llm.client import Client

ENTITY_SHARE = 6_000 / 30_000
RELATION_SHARE = 8_000 / 30_000
_LONGEST_REPLY = 8_192
_LONGEST_EMBEDDED = 8_192


def lightrag(
    name: str,
    client: Callable[[], AbstractContextManager[Client]],
    spent: Callable[[], Spent],
    identity: Sequence[object],
    vectors: KeptVectors,
) -> System:
    """Return LightRAG as a system.

    Args:
        name: as it is called in tables.
        client: makes the client that answers its prompts, through cache and limits.
        spent: returns what the calls took since it was last asked.
        identity: all that decides the model's replies.
        vectors: its embedder.

    Raises:
        UsageError: lightrag-hku is not installed.
    """
    try:
        import lightrag as library
    except ImportError:
        raise UsageError(
            "lightrag-hku is not installed; `pip install 'mrag-cli[lightrag]'` brings it"
        ) from None
    logging.getLogger("lightrag").setLevel(logging.ERROR)
    # LightRAG ties its locks to the first event loop it sees, so all indexes share one.
    runner = asyncio.Runner()
    dimension = 0

    @contextmanager
    def opened(collection: Collection) -> Iterator[OpenIndex]:
        nonlocal dimension
        dimension = dimension or vectors.embed(["dimension"]).shape[1]
        sources = [context.source for context in collection.contexts if context.source is not None]
        started = time.perf_counter()
        with client() as asked, tempfile.TemporaryDirectory(prefix="mrag-eval-") as folder:
            rag = _rag(folder, asked, vectors, dimension)
            try:
                runner.run(_inserted(rag, {source.doc: source.text for source in sources}))
                taken = spent()
                taken.seconds = time.perf_counter() - started
                taken.documents = len(sources)

                def ask(question: str, plan: Plan) -> Found:
                    began = time.perf_counter()
                    found = runner.run(_retrieved(rag, question))
                    packed = pack_graph(found, plan.budget)
                    return Found(packed, None, time.perf_counter() - began)

                yield OpenIndex(ask, taken, None)
            finally:
                runner.run(_finished(rag, asked))
        # What its questions cost is no part of the index.
        spent()

    settings = {"lightrag": [library.__version__, list(identity), vectors.name]}
    return System(
        name,
        settings,
        opened,
        lambda _contexts: Spent(),
        order="similarity",
        retrievers=("dense",),
        drawable=False,
    )


class _OwnTokenizer:
    """Our encoding, for LightRAG to count with."""

    def encode(self, content: str) -> list[int]:
        return tokens.encoding().encode_ordinary(content)

    def decode(self, tokens_: list[int]) -> str:
        return tokens.encoding().decode(tokens_)


def _rag(folder: str, client: Client, vectors: KeptVectors, dimension: int) -> Any:
    from lightrag import LightRAG
    from lightrag.utils import EmbeddingFunc, Tokenizer

    async def reply(
        prompt: str,
        system_prompt: str | None = None,
        history_messages: Sequence[Mapping[str, str]] | None = None,
        **_others: object,
    ) -> str:
        messages = [Message("system", system_prompt, len(system_prompt))] if system_prompt else []
        messages += [Message(said["role"], said["content"]) for said in history_messages or ()]
        messages.append(Message("user", prompt))
        size = sum(tokens.count(message.text) for message in messages)
        longest = min(_LONGEST_REPLY, client.facts.output_tokens)
        try:
            return (await client.ask(Request(tuple(messages), longest, "lightrag", None, size))).text
        except CallFailed as failed:
            raise ModelError(f"{client.settings.model}: {failed}; a rerun resumes") from failed

    async def embed(texts: list[str], **_others: object) -> NDArray[np.float32]:
        return vectors.embed(texts)

    return LightRAG(
        working_dir=folder,
        workspace=folder.rsplit("/", 1)[-1],
        llm_model_func=reply,
        llm_model_name=client.settings.model,
        embedding_func=EmbeddingFunc(embedding_dim=dimension, func=embed, max_token_size=_LONGEST_EMBEDDED),
        tokenizer=Tokenizer("cl100k_base", _OwnTokenizer()),
        # The client keeps replies itself.
        enable_llm_cache=False,
        enable_llm_cache_for_entity_extract=False,
        llm_model_max_async=client.settings.concurrency,
    )


async def _inserted(rag: Any, texts: Mapping[str, str]) -> None:
    """Insert documents.

    Raises:
        ModelError: LightRAG could not process one of them.
    """
    await rag.initialize_storages()
    await rag.ainsert(list(texts.values()), ids=list(texts), file_paths=list(texts))
    statuses = await rag.doc_status.get_by_ids(list(texts))
    for doc, status in zip(texts, statuses, strict=True):
        found = dict(status or {})
        if str(found.get("status", "")).rpartition(".")[2].lower() != "processed":
            reason = found.get("error_msg") or found.get("status") or "no status"
            raise ModelError(f"LightRAG could not insert {doc}: {reason}; a rerun resumes")


async def _retrieved(rag: Any, question: str) -> Mapping[str, Any]:
    from lightrag import QueryParam

    found = await rag.aquery_data(question, QueryParam(mode="mix", enable_rerank=False))
    data: Mapping[str, Any] = found.get("data") or {}
    return data


async def _finished(rag: Any, client: Client) -> None:
    await rag.finalize_storages()
    await client.close()


def pack_graph(found: Mapping[str, Any], budget: int) -> Packed:
    """Return a context of what LightRAG retrieved, of at most ``budget`` tokens.

    Entities and relations are taken in its order while they fit into their shares of the budget, then chunks;
    the last chunk is cut where the budget ends.

    Args:
        found: ``entities``, ``relationships`` and ``chunks`` as its ``aquery_data`` returns them.
        budget: in tokens.
    """
    packer = _Packer()
    packer.fill(
        ((one, f"{one.get('entity_name')}: {one.get('description')}") for one in found.get("entities", ())),
        int(budget * ENTITY_SHARE),
    )
    packer.fill(
        (
            (one, f"{one.get('src_id')} - {one.get('tgt_id')}: {one.get('description')}")
            for one in found.get("relationships", ())
        ),
        packer.used + int(budget * RELATION_SHARE),
    )
    packer.fill(((one, str(one.get("content") or "")) for one in found.get("chunks", ())), budget, cut=True)
    context = tokens.SEPARATOR.join(evidence.text for evidence in packer.taken)
    reasons = {evidence.rank: "packed" for evidence in packer.taken}
    return Packed(tuple(packer.taken), tokens.count(context), reasons, context)


class _Packer:
    """Takes texts in order while they fit."""

    def __init__(self) -> None:
        self.taken: list[Evidence] = []
        self.used = 0
        self._separator = tokens.count(tokens.SEPARATOR)

    def fill(self, texts: Iterable[tuple[Mapping[str, Any], str]], most: int, *, cut: bool = False) -> None:
        """Take texts until one does not fit into ``most`` tokens in all; with ``cut``, its beginning."""
        for found, text in texts:
            before = self._separator if self.taken else 0
            left = most - self.used - before
            whole = text.strip()
            fitting = whole if tokens.count(whole) <= left else _beginning(whole, left) if cut else ""
            if fitting:
                size = tokens.count(fitting)
                rank = len(self.taken) + 1
                doc = str(found.get("file_path") or "")
                self.taken.append(Evidence(rank, doc, (rank,), fitting, size, size + self._separator))
                self.used += size + before
            if fitting != whole:
                return


def _beginning(text: str, most: int) -> str:
    """Return the longest beginning of ``text`` of at most ``most`` tokens, or nothing."""
    starts = tokens.boundaries(text)
    while most > 0:
        shown = text[: starts[most]].strip()
        # A beginning may have more tokens than it had inside the whole.
        if tokens.count(shown) <= most:
            return shown
        most -= 1
    return ""
