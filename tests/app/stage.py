"""Where page and test meet, since AppTest runs the script in a namespace of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.visuals.live.test_hub import HubUnderTest


@dataclass(slots=True)
class Stage:
    """The hub that the page script shows."""

    under_test: HubUnderTest = field(default_factory=HubUnderTest)


STAGE = Stage()
