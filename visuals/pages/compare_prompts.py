"""Where the prompts of a comparison come from: files and pasted text, with a preview.

What was left out and why is told before anything runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from inference.models.tokenization import TextCodec
from inference.prompts.prompt_files import (
    BLANK_LINE,
    MAX_BYTES,
    MAX_PROMPTS,
    PASTED,
    SUFFIXES,
    Upload,
    UploadedPrompt,
    Uploads,
    UploadSettings,
    columns_of,
    grouped,
    read_uploads,
)
from inference.records.errors import TokenByTokenError
from visuals.charts.units import counted
from visuals.live.comparison_plan import MAX_SUBJECTS
from visuals.live.hub import Hub
from visuals.pages.examples import example_prompts
from visuals.pages.markdown import plain

WHOLE, LINE, OTHER = "nothing: a file is a prompt", "a line of ---", "other …"
SEPARATORS = (WHOLE, BLANK_LINE, LINE, OTHER)
FIRST_COLUMN = "prompt, text or messages"
PREVIEWED = 50
HEAD = 80


def prompt_sources(hub: Hub) -> None:
    """Draw where the prompts come from, what was left out and why, and which are chosen."""
    left, right = st.columns(2)
    files = left.file_uploader(
        f"Prompt files, {MAX_BYTES >> 20} MB each at most",
        type=list(SUFFIXES),
        accept_multiple_files=True,
        key="prompt-files",
        help="Text and Markdown: a prompt each, or several with a separator. CSV, TSV, Parquet: a "
        "column. JSON and JSON Lines: prompt, text, messages (OpenAI) or conversations (ShareGPT).",
    )
    right.text_area(
        "Or paste prompts",
        key="pasted",
        height=118,
        placeholder="Paste prompts here; what is chosen at the left parts them",
    )
    with left.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        _reading(files)
    uploads = _uploads()
    _left_out(uploads)
    _choose(uploads)
    _preview(hub.codec(), uploads)


def _reading(files: Sequence[object]) -> None:
    """Draw how text is parted and which column holds the prompts."""
    st.selectbox(
        "Text is parted by",
        SEPARATORS,
        key="separator",
        width=230,
        help="A text or Markdown file is one prompt unless a separator is chosen; pasted text is "
        "parted at blank lines unless another separator is.",
    )
    if st.session_state.get("separator") == OTHER:
        st.text_input("Separator", key="other-separator", width=140)
    columns = [name for one in _files() for name in columns_of(one, _settings(has_column=False))]
    if columns:
        options = [FIRST_COLUMN, *dict.fromkeys(columns)]
        st.selectbox("Column", options, key="column", width=240)
        st.toggle("First line names the columns", value=True, key="header")
    st.button(
        "Add three examples",
        key="add-examples",
        on_click=_add_examples,
        disabled=bool(files),
        help="Fill the box with three of the example prompts.",
    )


def _add_examples() -> None:
    examples = [one.prompt for one in example_prompts() if len(one.prompt) < 400]  # noqa: PLR2004
    st.session_state["pasted"] = "\n\n".join(" ".join(prompt.split()) for prompt in examples[:3])
    st.session_state["separator"] = WHOLE


def _files() -> list[Upload]:
    """Return the uploaded files and the pasted text, read once for each."""
    state = st.session_state
    files = [
        Upload(name=one.name, content=one.getvalue()) for one in state.get("prompt-files") or ()
    ]
    pasted = str(state.get("pasted") or "")
    if pasted.strip():
        content = pasted.encode("utf-8", "replace")
        files.append(Upload(name=f"{PASTED}.txt", content=content, separator=BLANK_LINE))
    return files


def _settings(*, has_column: bool = True) -> UploadSettings:
    state = st.session_state
    separators = {
        WHOLE: "",
        BLANK_LINE: BLANK_LINE,
        LINE: "\n---\n",
        OTHER: str(state.get("other-separator") or ""),
    }
    column = str(state.get("column", FIRST_COLUMN))
    return UploadSettings(
        separator=separators[state.get("separator", WHOLE)],
        column=column if has_column and column != FIRST_COLUMN else "",
        has_header=bool(state.get("header", True)),
    )


def _uploads() -> Uploads:
    return _read(tuple(_files()), _settings())


@st.cache_data(max_entries=16, show_spinner="Reading the prompts …")
def _read(files: tuple[Upload, ...], settings: UploadSettings) -> Uploads:
    return read_uploads(files, settings)


def _left_out(uploads: Uploads) -> None:
    """Say how the files were read and what was not taken."""
    for note in uploads.notes:
        st.info(plain(note), icon=":material/info:")
    if not uploads.left_out:
        return
    lines = [
        f"- {plain(where)}: {plain(reason)}" + (f" ({count:,} times)" if count > 1 else "")
        for where, reason, count in grouped(uploads.left_out)
    ]
    st.warning(
        f"{counted(len(uploads.left_out), 'entry').replace('entrys', 'entries')} left out:\n\n"
        + "\n".join(lines),
        icon=":material/filter_alt_off:",
    )


def _choose(uploads: Uploads) -> None:
    count = len(uploads.prompts)
    if not count:
        st.caption("No prompt yet: upload a file or paste some text.")
        return
    signature = hash(uploads.prompts)
    if st.session_state.get("chosen-of") != signature:
        st.session_state["chosen-of"] = signature
        st.session_state["chosen"] = list(range(min(count, MAX_SUBJECTS)))
    most = f" of at most {MAX_PROMPTS:,}" if count == MAX_PROMPTS else ""
    st.multiselect(
        f"Prompts to compare: up to {MAX_SUBJECTS} of the {counted(count, 'prompt')}{most}",
        range(count),
        key="chosen",
        max_selections=MAX_SUBJECTS,
        format_func=lambda number: f"{number + 1} \u00b7 {_head(uploads.prompts[number].text, 40)}",
    )


def _preview(codec: TextCodec | None, uploads: Uploads) -> None:
    """Show the first prompts with the tokens that the model would be fed."""
    if not uploads.prompts:
        return
    is_raw = not st.session_state.get("template", True)
    rows = [
        {
            "": number,
            "tokens": _tokens(codec, one, is_raw=is_raw),
            "prompt": _head(one.text, HEAD),
            "from": f"{one.source}, {one.place}",
        }
        for number, one in enumerate(uploads.prompts[:PREVIEWED], start=1)
    ]
    st.dataframe(rows, hide_index=True, key="preview", alt="The prompts found, with token counts")
    if len(uploads.prompts) > PREVIEWED:
        st.caption(f"The first {PREVIEWED} of {len(uploads.prompts):,} prompts.")
    if codec is None:
        st.caption("Tokens are counted once the model is loaded.")


def _tokens(codec: TextCodec | None, prompt: UploadedPrompt, *, is_raw: bool) -> str:
    if codec is None:
        return "\u2013"
    try:
        if prompt.turns:
            return f"{len(codec.encode_turns(prompt.turns, is_raw=is_raw)):,}"
        return f"{len(codec.encode(prompt.text, is_raw=is_raw)):,}"
    except TokenByTokenError as error:
        return str(error)


def chosen_prompts() -> tuple[UploadedPrompt, ...]:
    """Return the prompts ticked for the comparison."""
    prompts = _uploads().prompts
    picked: Sequence[int] = st.session_state.get("chosen", ())
    return tuple(prompts[number] for number in picked if number < len(prompts))


def _head(text: str, limit: int) -> str:
    line = " ".join(text[: limit * 4].split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
