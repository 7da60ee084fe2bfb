"""What goes wrong between here and an engine, as one sentence each."""

from __future__ import annotations

import json
import re
import ssl
from typing import Any

import httpcore2

from inference.records.errors import first_line
from inference.remote.address import Endpoint

LONGEST_QUOTE = 240
MOST_QUOTED_BYTES = 64 * 1024
GOOD = 200
COMPRESSED = (
    "the answer is compressed ({}), which hides when tokens arrive; have the proxy before the "
    "engine leave it as it is"
)
UNREADABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
ADVICE = {
    400: "change what is asked for",
    401: "give its key (on the command line with --key-env)",
    403: "give a key that may do this (on the command line with --key-env)",
    404: "check the address and the model's name",
    408: "try again",
    413: "give a shorter prompt",
    422: "change what is asked for",
    429: "wait, or ask for less at a time",
    503: "wait until it is ready",
}


def wire_problem(error: BaseException, endpoint: Endpoint, silence_s: float) -> str:
    """Return what an error of the connection means, in a sentence."""
    address = endpoint.address
    cause = _certificate_problem(error)
    if cause:
        return (
            f"the certificate of {address} is not valid ({cause}); use one that this machine "
            f"trusts, or name its authority in SSL_CERT_FILE"
        )
    if isinstance(error, httpcore2.ConnectTimeout):
        return f"{address} does not answer; check the address, and that the engine runs"
    if isinstance(error, httpcore2.ConnectError):
        return (
            f"{address} cannot be reached ({first_line(error)}); check the address, and that "
            "the engine runs"
        )
    if isinstance(error, httpcore2.TimeoutException):
        return f"{address} sent nothing for {silence_s:g} s; it may be busy or have stopped"
    if isinstance(error, httpcore2.ProtocolError):
        return f"{address} broke off or does not speak HTTP as expected ({first_line(error)})"
    return f"the connection to {address} broke ({first_line(error)})"


def status_problem(endpoint: Endpoint, status: int, headers: dict[str, str], body: bytes) -> str:
    """Return what an answer other than 200 means, in a sentence, with the server's own words."""
    address = endpoint.address
    if 300 <= status < 400:  # noqa: PLR2004  what HTTP calls redirection
        place = quoted(endpoint, headers.get("location", "elsewhere"))
        return (
            f"{address} answers {status} and points to {place}; redirects are not followed, "
            "give the address where the engine is"
        )
    words = _words(body, headers.get("content-type", ""))
    said = f": {quoted(endpoint, words)}" if words else ""
    if status == 401 and endpoint.key is not None:  # noqa: PLR2004  what HTTP calls unauthorised
        return f"{address} does not take the key (401){said}; give another one"
    advice = ADVICE.get(status, "look into the engine's own log")
    return f"{address} answers {status}{said}; {advice}"


def content_problem(endpoint: Endpoint, kind: str, body: bytes) -> str:
    """Return why an answer is no stream of tokens, in a sentence."""
    address = endpoint.address
    if "html" in kind or body.lstrip()[:1] == b"<":
        return (
            f"{address} answers with an HTML page; it is no engine's address, or a proxy is in "
            "the way"
        )
    words = _words(body, kind)
    said = f": {quoted(endpoint, words)}" if words else ""
    return f"{address} did not stream but answered with {kind or 'content of no kind'}{said}"


def quoted(endpoint: Endpoint, words: str) -> str:
    """Return a server's words on one line, short, and without the key."""
    line = UNREADABLE.sub(" ", endpoint.without_key(words)).strip().rstrip(".")
    line = line.encode("utf-8", "replace").decode()
    return line if len(line) <= LONGEST_QUOTE else f"{line[:LONGEST_QUOTE]}\u2026"


def error_words(value: Any) -> str | None:  # noqa: ANN401  any JSON
    """Return what an error in JSON says; None where the value is no error.

    OpenAI's ``error`` object, its text alone, FastAPI's ``detail``, and an object of kind error.
    """
    if not isinstance(value, dict):
        return None
    error: Any = value.get("error")
    if error is None and value.get("object") == "error":
        error = value
    if error is None:
        error = value.get("detail")
    if not error:
        return None
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) and message else json.dumps(error)


def _words(body: bytes, kind: str) -> str:
    if "html" in kind:
        return "an HTML page"
    text = body[:MOST_QUOTED_BYTES].decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    words = error_words(value)
    return text if words is None else words


def _certificate_problem(error: BaseException) -> str:
    """Return what is wrong with a certificate; empty where the error is about something else."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause.verify_message
        cause = cause.__cause__ or cause.__context__
    return ""
