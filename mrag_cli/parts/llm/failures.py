"""What a failed call means, and messages without secrets."""

from __future__ import annotations

import os
import re
import time
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Failure(Enum):
    """What a failed call means for the next one."""

    FATAL = "the key, the model's name or the account is wrong: no call can succeed"
    REFUSED = "this request is refused for good; others may succeed"
    TOO_LONG = "the prompt does not fit the model's context"
    BUSY = "the server asks everyone to slow down"
    BROKEN = "this call failed; the same call may succeed"
    UNREACHABLE = "there is no server there, or it went away"


class CallFailed(Exception):
    """A call that brought no reply.

    Args:
        failure: what it means.
        message: what happened, without secrets.
        retry_after: seconds after which the server wants to be asked again, or None.
    """

    def __init__(self, failure: Failure, message: str, retry_after: float | None = None) -> None:
        super().__init__(scrubbed(message))
        self.failure = failure
        self.retry_after = retry_after


_NO_ACCESS = re.compile(
    r"missing credentials|provider not provided"
    r"|(?:api[_ ]?key|credentials?)\b.{0,60}"
    r"\b(?:missing|required|invalid|incorrect|not found|must be set|not set)"
    r"|(?:missing|invalid|incorrect|no|set the|set an?|set) (?:\w+ ){0,3}(?:api[_ ]?key|credentials?)",
    re.IGNORECASE | re.DOTALL,
)
# Gemini uses the same words for a limit a minute, so they count from OpenAI only.
_NO_QUOTA = re.compile(r"insufficient_quota|OpenAIException - You exceeded your current quota")
_NO_MODEL = re.compile(
    r"model.{0,120}(?:not exist|not found|not supported|unknown|invalid|no access)"
    r"|(?:invalid|unknown|no such|unsupported|non-?existent) model|not a valid model",
    re.IGNORECASE | re.DOTALL,
)
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|maximum context|too many tokens|prompt is too long"
    r"|exceeds? the (?:available )?context|input (?:is )?too long",
    re.IGNORECASE,
)
_FLAGGED = re.compile(r"flagged|moderat|content[ _](?:policy|filter|management)|safety", re.IGNORECASE)
_NO_SERVER = re.compile(
    r"cannot connect|connect call failed|connection refused|name or service not known|getaddrinfo",
    re.IGNORECASE,
)


def meaning_of(status: int | None, message: str) -> Failure:
    """Return what a failure means.

    Args:
        status: the HTTP status, or None when there was no answer.
        message: the body of the answer, or the error's text.
    """
    if _NO_SERVER.search(message) and status in (None, 500):
        return Failure.UNREACHABLE
    if status in (400, 403, 422) and _FLAGGED.search(message):
        return Failure.REFUSED
    if status in (401, 402, 403, 404) or (status == 429 and _NO_QUOTA.search(message)):
        return Failure.FATAL
    if status in (None, 400, 422, 500) and _NO_ACCESS.search(message):
        return Failure.FATAL
    if status in (400, 413, 422, 500) and _TOO_LONG.search(message):
        return Failure.TOO_LONG
    if status in (400, 422) and _NO_MODEL.search(message):
        return Failure.FATAL
    if status in (429, 503, 529):
        return Failure.BUSY
    if status is not None and 400 <= status < 500 and status not in (408, 409, 425, 499):
        return Failure.REFUSED
    return Failure.BROKEN


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server's headers ask to wait, or None; ``retry-after-ms`` wins over a date.

    Args:
        headers: the answer's headers, names in lower case.
    """
    milliseconds = headers.get("retry-after-ms", "")
    if milliseconds.replace(".", "", 1).isdigit():
        return float(milliseconds) / 1000
    text = headers.get("retry-after", "").strip()
    if text.replace(".", "", 1).isdigit():
        return float(text)
    if not text:
        return None
    from email.utils import parsedate_to_datetime  # 15 ms, for the few servers that name a date

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SECRET_SHAPE = re.compile(
    r"\b(?:sk|pk|gsk|xai|hf|AIza)[-_A-Za-z0-9]{12,}|(?i:bearer)\s+[^\s\"',}]+|//[^/\s@]+@"
)


def scrubbed(message: str) -> str:
    """Return ``message`` without the environment's keys and without whatever else looks like one."""
    for name, value in os.environ.items():
        if len(value.strip()) >= 8 and _SECRET_NAME.search(name):
            message = message.replace(value.strip(), "[hidden]")
    return _SECRET_SHAPE.sub(
        lambda found: "//[hidden]@" if found[0].startswith("//") else "[hidden]", message
    )
