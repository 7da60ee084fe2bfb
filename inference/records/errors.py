"""The project's exceptions; each message is one sentence for the user: what is wrong, what to do.

::

    TokenByTokenError
    ├── InputError            what the user gave cannot be used            (exit code 2)
    │   ├── PromptError       an empty prompt, or one longer than the context
    │   ├── ModelNotFoundError  no such model, or it cannot be fetched
    │   ├── UnsupportedModelError  not a causal language model we can run
    │   └── RunFileError      a run file that cannot be read
    ├── FetchError            a download failed or its checksum is wrong   (exit code 2)
    ├── EndpointError         an engine at an address did not answer as it should (exit code 2)
    ├── OutOfMemoryError      the device has too little memory             (exit code 2)
    └── BackendError          the model did not do what it promised        (exit code 2)

``first_line`` is for errors of other people's code, quoted inside such a sentence. No torch.
"""

import re


class TokenByTokenError(Exception):
    """The root; its message is shown to the user as it stands."""


class InputError(TokenByTokenError):
    """What the user gave cannot be used."""


class PromptError(InputError):
    """The prompt is empty or does not fit."""


class ModelNotFoundError(InputError):
    """No such model, or it cannot be fetched."""


class UnsupportedModelError(InputError):
    """Not a causal language model that can be run here."""


class RunFileError(InputError):
    """A run file that cannot be read."""


class FetchError(TokenByTokenError):
    """A download failed, or what came is not what was asked for."""


class EndpointError(TokenByTokenError):
    """An engine at an address cannot be reached, or did not answer as it should."""


class OutOfMemoryError(TokenByTokenError):
    """The device has too little memory."""


class BackendError(TokenByTokenError):
    """The model did not do what it promised."""


def first_line(error: BaseException) -> str:
    """Return an error's first line without its final punctuation; its kind if it says nothing.

    A ``KeyError`` shows its argument in quotes; here that argument stands by itself.
    """
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    lines = [line for line in re.split(r"[\r\n]+", text.strip()) if line]
    return lines[0].rstrip(" .;:") if lines else type(error).__name__
