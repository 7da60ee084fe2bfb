"""What the pages say of a run at an address, and of what nobody outside its engine can see."""

from __future__ import annotations

READS = (
    "Each shade is one network read, so tokens of one shade came together; a small number says how "
    "many, where it is more than one. Point at a read for its time, ids and bytes."
)
TTFT = (
    "From the request being sent to the read that brought its first token. Connecting is measured "
    "here; queue, load and prefill are the engine's own durations where it states them; what is "
    "left is the first decode step, the network, and what the engine does not name."
)
GAPS = (
    "Between network reads that brought tokens. Several tokens may come in one, and a buffer on "
    "the way may join many, so these are not called inter-token latency."
)
ITL = "Every network read brought exactly one token, so these gaps are inter-token latencies."
NO_GAPS = "There is a gap once a second network read has brought tokens."
NO_TTFT = "No token has come yet."
NO_CANDIDATES = (
    "This engine did not name tokens with their probabilities, so what else might have been "
    "selected is not known."
)
MASK = (
    "Counted from the lengths: a causal model lets each token attend to itself and to all before "
    "it. A model with sliding windows attends to less."
)
NO_MASK = (
    "The engine does not say how many tokens prompt and answer have, so no mask can be counted."
)
NO_KV = (
    "The model's name is none of the built-in configs, so its K/V cannot be counted from outside."
)
NOT_VISIBLE = {
    "Step times": "an arrival is no step: the engine may run several steps before it sends, or "
    "send one step's tokens in parts.",
    "Attention weights": "no serving engine sends them.",
    "Batch and slots": "which other requests ran in the same steps is not in a stream.",
    "Layers of the K/V cache": "only the engine knows which blocks hold this request.",
    "Roofline": "it needs the time of each step and the device, and a stream states neither.",
    "Device, power and memory": "the machine behind an address is not asked.",
}
NO_PAUSE = "An engine elsewhere cannot be paused: it generates at its own pace once it was asked."
NO_STEP = "An engine elsewhere cannot be stepped: its forward passes are not controlled from here."
STARTS = (
    "Sends the prompt to the address shown, after two-token requests that find what the engine "
    "tells."
)
ENDS = (
    "Close the stream. What came is kept, and where the engine counts its running requests it is "
    "checked that the count falls."
)
APPLIES = (
    "Of the settings, the prompt, maximum new tokens, decoding, seed and chat template are sent. "
    "Model, number format, device, attention, cache and batch are this machine's."
)
