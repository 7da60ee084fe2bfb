"""The marks of the terms on every page: a component that underlines each where it first stands.

It changes nothing that Streamlit has drawn: the browser paints the underlines over ranges of text,
and a card says the sentence of the one glossary.
"""

from __future__ import annotations

from streamlit.components import v2

from visuals.panel.modules import loader, term_styles
from visuals.panel.routes import scripts_address, terms_address

TOUR = "tour"  # below the server's address

_component = v2.component(
    "token_by_token_terms",
    html="",
    css=term_styles(),
    js=loader(),
    isolate_styles=True,
)


def term_marks(*, has_tour: bool) -> None:
    """Mark the terms on the page, whatever is drawn there.

    Args:
        has_tour: The visitor may open the tour, to which each card has a link.
    """
    _component(
        key="terms",
        data={
            "entry": "terms.js",
            "scripts": scripts_address(),
            "terms": terms_address(),
            "tour": TOUR if has_tour else "",
        },
    )
