"""What is asked of models, within the run's limits."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from evaluations import packed
from heard import Heard
from loopback import Answer, Asked, serving

from mrag_cli.cli.eval_models import Limits, Model, Once, answers, summaries
from mrag_cli.ground.errors import LimitReached
from mrag_cli.parts.llm.client import ClientSettings
from mrag_cli.parts.sources import Source


def _model(url: str, folder: Path, **limits: Any) -> Model:
    settings = ClientSettings("openai/m", url, max_attempts=1)
    return Model(settings, Limits(cache=folder / "cache.sqlite3", **limits), Heard())


def _first_word(asked: Asked) -> Answer:
    passages = re.search(r"## Passages\s+(\w+)", asked.prompt)
    return Answer(f" {passages[1]} \n" if passages else "a summary")


Script = Callable[[Asked], Answer]


def test_answers_come_in_order_and_empty_contexts_cost_nothing(tmp_path: Path) -> None:
    """Each question is answered from its own context; what the passages do not hold is an empty answer."""
    with serving(
        lambda asked: Answer("Unanswerable.") if "dunno" in asked.prompt else _first_word(asked)
    ) as server:
        asked = [(f"Question {n}?", packed(f"word{n} more")) for n in range(20)]
        model = _model(server.url, tmp_path)
        found = answers(model, 0, [*asked, ("Nothing?", packed()), ("dunno?", packed("words"))])
    assert found == [*(f"word{n}" for n in range(20)), "", ""]
    assert len(server.asked) == 21
    assert model.spent().calls == 0


def test_a_repetition_asks_again_and_a_rerun_does_not(tmp_path: Path) -> None:
    """The cache answers the same repetition, never another one."""
    with serving(_first_word) as server:
        model = _model(server.url, tmp_path)
        for number in (0, 1, 0, 1):
            answers(model, number, [("Q?", packed("word"))])
    assert len(server.asked) == 2


def test_a_call_that_fails_has_no_answer(tmp_path: Path) -> None:
    """A failed call is None, which no measure takes for a wrong answer."""

    def script(asked: Asked) -> Answer:
        return Answer("no", status=400) if "bad" in asked.prompt else _first_word(asked)

    with serving(script) as server:
        model = _model(server.url, tmp_path)
        assert answers(model, 0, [("good?", packed("word")), ("bad?", packed("word"))]) == ["word", None]


def test_limits_are_shared_by_all_tasks(tmp_path: Path) -> None:
    """Calls of one task count against the limit of the next."""
    with serving(_first_word) as server:
        model = _model(server.url, tmp_path, max_calls=3)
        answers(model, 0, [("Q?", packed("one")), ("Q?", packed("two"))])
        with pytest.raises(LimitReached):
            answers(model, 0, [("Q?", packed("three")), ("Q?", packed("four"))])
    assert len(server.asked) == 3


def test_summaries_show_the_beginning_and_are_counted(tmp_path: Path) -> None:
    """A document that is too long is shown up to the limit; what summaries took is told once."""
    sources = [Source("a", "short text"), Source("b", "long " * 20_000)]
    with serving(_first_word) as server:
        model = _model(server.url, tmp_path)
        assert summaries(model, sources) == ["a summary", "a summary"]
    assert max(len(asked.prompt) for asked in server.asked) < 70_000
    spent = model.spent()
    assert (spent.calls, model.spent().calls) == (2, 0)
    assert spent.prompt_tokens > 0


def test_a_notice_is_said_once() -> None:
    """However many clients find the price unknown, it is said once; failures are all passed on."""
    heard = Heard()
    once = Once(heard)
    for _ in range(2):
        once.notice("the price is unknown")
        once.failed("a", "reason")
    assert heard.notices == ["the price is unknown"]
    assert len(heard.failures) == 2
