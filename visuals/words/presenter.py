"""What presenter mode says: the idea of each panel in one line, and what its people are told.

An idea has to fit into one line that can be read from the back of a room. ``{T}`` and ``{L}`` stand
for the tokens fed in the step shown and the tokens attended to.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Idea:
    """What to take away from a panel.

    Attributes:
        title: What the panel is called beside its number.
        prefill: While the step shown is one of prefill.
        decode: While it is one of decode.
    """

    title: str
    prefill: str
    decode: str


IDEAS = {  # in the order of the number keys, by the panels' names
    "tokens": Idea(
        title="Tokens",
        prefill="{T} prompt tokens are fed together; the last one's scores give the first output.",
        decode="One token is fed, one is selected: it is stored only when the next step feeds it.",
    ),
    "mask": Idea(
        title="Attention",
        prefill="Every prompt token reads itself and those before it: that is the triangle.",
        decode="The token just fed reads the keys stored so far, its own included: one more row.",
    ),
    "roofline": Idea(
        title="Roofline",
        prefill="One read of the weights serves {T} tokens: many FLOPs for each byte.",
        decode="A step reads all weights for few tokens: few FLOPs a byte, so it lies on the left.",
    ),
    "latency": Idea(
        title="Step latency",
        prefill="The whole prompt is fed before a token is selected: the wait for the first one.",
        decode="One step gives one token in each row; dashed is the least that it could take.",
    ),
    "weights": Idea(
        title="Weight reuse",
        prefill="The matrix is read once, and {T} tokens pass through it.",
        decode="The same matrix is read again in every step, however few tokens pass through it.",
    ),
    "kv": Idea(
        title="K/V cache",
        prefill="Each token fed leaves a key and a value in every layer, so none is fed twice.",
        decode="Each step adds a key and a value to every layer, and reads those stored before.",
    ),
    "utilization": Idea(
        title="Utilisation",
        prefill="Prefill computes much for each byte that it reads.",
        decode="Decode reads much and computes little: busy processors may be waiting for memory.",
    ),
    "next": Idea(
        title="Next token",
        prefill="The model rates every token of its vocabulary; one of them is selected.",
        decode="The model rates every token of its vocabulary; one of them is selected.",
    ),
    "batch": Idea(
        title="Batch",
        prefill="{T} tokens of several prompts are fed in one step.",
        decode="One read of the weights serves all rows; each reads its own keys and values.",
    ),
}

ONLY_FOLLOWING = (
    "Only the presenter steps, chooses panels and turns the light on or off; you follow."
)
TAKEN_OVER = "Somebody else presents now. Press F twice to take over again."
RUN_NOT_HERE = "This run is not on the server any more, so others cannot follow it."
UNKNOWN_PANELS = "The address asks for a panel that there is not: {names}. There are {all_names}."
TOO_MANY_PANELS = "Two panels at a time are shown, the first two that the address names."
FOR_A_ROOM = (
    "Others cannot reach this address: it leads to this machine only. To let a room follow, start "
    "the server with: make run ADDRESS=0.0.0.0"
)
