"""How the systems of ``mrag eval`` make their markers: each by the stages of its own command."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mrag_cli.cli.eval_models import summaries
from mrag_cli.cli.eval_systems import Maker
from mrag_cli.ground.errors import UsageError
from mrag_cli.parts.chop.cosine import vector_similarities
from mrag_cli.parts.evaluation.systems import Spent
from mrag_cli.parts.extractive import markers
from mrag_cli.parts.llm.prompt import VARIANTS, ExtractionPrompt, shipped
from mrag_cli.parts.llm.summary import Summary as Extraction
from mrag_cli.parts.validation_report import Summary
from mrag_cli.records.models import DocumentGroup
from mrag_cli.stages import chop, chunk, extract, tag, validate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mrag_cli.cli.eval_models import Model
    from mrag_cli.ground.report import Reporter
    from mrag_cli.parts.evaluation.vectors import KeptVectors
    from mrag_cli.parts.sources import Source
    from mrag_cli.records.models import StreamPart

CHUNKED = ("fixed", "overlap", "semantic", "pic", "dos", "naive", "cosine")
"""The systems whose markers are chunks, key and value at once; ``dos`` has the windows of ``fixed``."""

NAMES = ("mrag", *CHUNKED, "chop", "lightrag")
"""Every system that can be named."""


class _Silent:
    """Drops the notices of stages, which would come once for each of thousands of indexes; failures pass."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter

    def notice(self, message: str) -> None:
        """Drop a notice."""

    def failed(self, name: str, reason: str) -> None:
        """Pass a failure on."""
        self._reporter.failed(name, reason)


def maker(
    base: str, variant: str, model: Model | None, embedder: KeptVectors | None, reporter: Reporter
) -> Maker:
    """Return how the system ``base`` makes its markers.

    Args:
        base: one of `NAMES`, but for ``lightrag``.
        variant: of the extraction prompt, ``a``, ``b`` or ``c``; empty for the first.
        model: writes markers and summaries; None for the extractive ones.
        embedder: finds the breaks of ``semantic``, ``pic`` and ``cosine``; None for vectors of terms.
        reporter: told of failed documents.

    Raises:
        UsageError: there is no such system, or the variant needs a model.
    """
    quiet = _Silent(reporter)
    if variant and (base != "mrag" or model is None):
        raise UsageError(f"{base}+{variant}: prompt variants belong to mrag with --extract-model")
    if base == "mrag":
        return _by_model(model, variant or "a", quiet) if model else _by_rules(quiet)
    if base == "chop":
        settings = chop.ChopSettings()
        return Maker(
            lambda sources: _groups(chop.chop(sources, settings, quiet)),
            {"chop": [chop.CHOP_VERSION, asdict(settings)]},
            refined=True,
        )
    if base in CHUNKED:
        return _chunks(base, model, embedder, quiet)
    raise UsageError(f"--systems {base}: there is no such system; there are {', '.join(NAMES)}")


def checked(groups: Iterable[DocumentGroup], reporter: Reporter) -> Iterator[DocumentGroup]:
    """Validate documents, so that every unit can be reached; flags change nothing."""
    settings = validate.ValidateSettings()
    return _groups(validate.validate(groups, settings, _Silent(reporter), Summary()))


def _groups(parts: Iterable[StreamPart]) -> Iterator[DocumentGroup]:
    return (part for part in parts if isinstance(part, DocumentGroup))


def _by_rules(reporter: Reporter) -> Maker:
    settings = tag.TagSettings()

    def groups(sources: Sequence[Source]) -> Iterator[DocumentGroup]:
        tagged = tag.tag(sources, settings, reporter)
        return checked(_groups(extract.extract_by_rules(tagged, markers, reporter)), reporter)

    return Maker(groups, {"mrag": ["extractive", asdict(settings)]}, refined=True)


def _by_model(model: Model, variant: str, reporter: Reporter) -> Maker:
    settings = tag.TagSettings()
    prompt = shipped(VARIANTS[variant])
    extraction = extract.ExtractSettings(prompt=ExtractionPrompt(prompt))

    def groups(sources: Sequence[Source]) -> Iterator[DocumentGroup]:
        tagged = tag.tag(sources, settings, reporter)
        with model.client() as client:
            marked = extract.extract_by_model(tagged, client, extraction, reporter, Extraction())
            yield from checked(_groups(marked), reporter)

    made = {"mrag": ["llm", prompt.version, model.identity, asdict(settings)]}
    return Maker(groups, made, model.spent, refined=True)


def _chunks(base: str, model: Model | None, embedder: KeptVectors | None, reporter: Reporter) -> Maker:
    method: Any = "fixed" if base == "dos" else base
    size, overlap = chunk.SIZES.get(method, (0, 0))
    settings = chunk.ChunkSettings(method, size, overlap)
    compared: dict[str, Any] = {}
    by: list[object] = []
    if base in ("semantic", "pic", "cosine"):
        by.append(embedder.name if embedder else "terms")
        if embedder:
            similarities = vector_similarities(embedder.embed)
            compared = {"similarities": similarities, "vectors": embedder.embed}
    summarising = model if base == "pic" else None
    if summarising:
        by += summarising.identity

    def groups(sources: Sequence[Source]) -> Iterator[DocumentGroup]:
        found = {}
        if summarising:
            docs = [source.doc for source in sources]
            found = dict(zip(docs, summaries(summarising, sources), strict=True))
        return _groups(chunk.chunk(sources, settings, reporter, summaries=found, **compared))

    return Maker(
        groups,
        {"chunk": [chunk.CHUNK_VERSION, asdict(settings), *by]},
        summarising.spent if summarising else Spent,
        order="position" if base == "dos" else None,
    )
