"""Where the prompts of a comparison come from: files and pasted text, with a preview.

It says what was left out and why before anything runs.
"""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

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
from visuals.pages.inputs import FIRST_COLUMN, Separator
from visuals.pages.markdown import escaped, quoted
from visuals.pages.page_states import ComparePageState
from visuals.pages.session import bound, change, session, value_of
from visuals.pages.widget_keys import PROMPT_FILES

PREVIEWED = 50
LONGEST_EXAMPLE = 400  # characters of an example that is added to the box
HEAD = 80


def prompt_sources(hub: Hub) -> None:
    """Draw where the prompts come from, what was left out and why, and which are chosen."""
    state = session().compare_page
    left, right = st.columns(2)
    left.file_uploader(
        f"Prompt files, {MAX_BYTES >> 20} MB each at most",
        type=list(SUFFIXES),
        accept_multiple_files=True,
        key=PROMPT_FILES,
        on_change=_take_files,
        args=(state,),
        help="Text and Markdown: one prompt each, or several with a separator. CSV, TSV, Parquet: "
        "a column. JSON and JSON Lines: prompts, questions, instructions or conversations (OpenAI, "
        "ShareGPT), and tables as pandas writes them. What is left out is said below.",
    )
    right.text_area(
        "Or paste prompts",
        **bound("pasted"),
        height=118,
        placeholder="Paste prompts here, separated by blank lines",
    )
    if state.files and not value_of(PROMPT_FILES):  # the page was left, the uploader is empty
        _kept_files(left, state)
    with left.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        _reading(has_files=bool(state.files))
    uploads = _uploads()
    _left_out(uploads)
    _choose(uploads, state)
    _preview(hub.codec(), uploads)


def _take_files(state: ComparePageState) -> None:
    uploads = value_of(PROMPT_FILES) or ()
    state.files = tuple(Upload(name=file.name, content=file.getvalue()) for file in uploads)


def _kept_files(box: DeltaGenerator, state: ComparePageState) -> None:
    with box.container(horizontal=True, vertical_alignment="center", gap="small"):
        names = ", ".join(file.name for file in state.files)
        st.caption(f"Still here: {quoted(names)}")
        st.button("Remove", key="remove-files", on_click=_drop_files, args=(state,))


def _drop_files(state: ComparePageState) -> None:
    state.files = ()


def _reading(*, has_files: bool) -> None:
    """Draw where text is split and which column holds the prompts."""
    st.selectbox(
        "Split text at",
        list(Separator),
        **bound("separator"),
        width=230,
        help="A text or Markdown file is one prompt unless a separator is chosen; pasted text is "
        "split at blank lines unless another separator is chosen.",
    )
    if session().compare.separator is Separator.OTHER:
        st.text_input("Separator", **bound("other-separator"), width=140)
    columns = [name for file in _files() for name in columns_of(file, _settings(has_column=False))]
    if columns:
        options = [FIRST_COLUMN, *dict.fromkeys(columns)]
        st.selectbox("Column", options, **bound("column", options), width=240)
        st.toggle("First line names the columns", **bound("header"))
    st.button(
        "Add three examples",
        key="add-examples",
        on_click=_add_examples,
        disabled=has_files,
        help="Fill the box with three of the example prompts.",
    )


def _add_examples() -> None:
    prompts = [example.prompt for example in example_prompts()]
    short = [" ".join(prompt.split()) for prompt in prompts if len(prompt) < LONGEST_EXAMPLE]
    change(pasted="\n\n".join(short[:3]), separator=Separator.NOTHING)


def _files() -> list[Upload]:
    """Return the uploaded files and the pasted text."""
    ours = session()
    files = list(ours.compare_page.files)
    pasted = ours.compare.pasted
    if pasted.strip():
        content = pasted.encode("utf-8", "replace")
        files.append(Upload(name=f"{PASTED}.txt", content=content, separator=BLANK_LINE))
    return files


def _settings(*, has_column: bool = True) -> UploadSettings:
    asked = session().compare
    separators = {
        Separator.NOTHING: "",
        Separator.BLANK_LINES: BLANK_LINE,
        Separator.MARK: "\n---\n",
        Separator.OTHER: asked.other_separator,
    }
    return UploadSettings(
        separator=separators[asked.separator],
        column=asked.column if has_column and asked.column != FIRST_COLUMN else "",
        has_header=asked.has_header,
    )


def _uploads() -> Uploads:
    return _read(tuple(_files()), _settings())


@st.cache_data(max_entries=16, show_spinner="Reading the prompts …")
def _read(files: tuple[Upload, ...], settings: UploadSettings) -> Uploads:
    return read_uploads(files, settings)


def _left_out(uploads: Uploads) -> None:
    """Say how the files were read and what was left out."""
    for note in uploads.notes:
        st.info(escaped(note), icon=":material/info:")
    if not uploads.left_out:
        return
    lines = [
        f"- {escaped(where)}: {escaped(reason)}" + (f" ({count:,} times)" if count > 1 else "")
        for where, reason, count in grouped(uploads.left_out)
    ]
    st.warning(
        f"{counted(len(uploads.left_out), 'entry', 'entries')} left out:\n\n" + "\n".join(lines),
        icon=":material/filter_alt_off:",
    )


def _choose(uploads: Uploads, state: ComparePageState) -> None:
    count = len(uploads.prompts)
    if not count:
        st.caption("No prompt yet: upload a file or paste some text.")
        return
    prompts_hash = hash(uploads.prompts)
    if state.prompts_hash != prompts_hash:
        state.prompts_hash = prompts_hash
        change(chosen=tuple(range(min(count, MAX_SUBJECTS))))
    limit = f"; no more than {MAX_PROMPTS:,} are read" if count == MAX_PROMPTS else ""
    st.multiselect(
        f"Prompts to compare (at most {MAX_SUBJECTS}, of {count:,}{limit})",
        range(count),
        **bound("chosen", range(count)),
        max_selections=MAX_SUBJECTS,
        format_func=lambda number: f"{number + 1} \u00b7 {_head(uploads.prompts[number].text, 40)}",
    )


def _preview(codec: TextCodec | None, uploads: Uploads) -> None:
    """Show the first prompts with the number of tokens that the model would be fed."""
    if not uploads.prompts:
        return
    is_raw = not session().run.has_template
    rows = [
        {
            "": number,
            "tokens": _tokens(codec, prompt, is_raw=is_raw),
            "prompt": _head(prompt.text, HEAD),
            "from": f"{prompt.source}, {prompt.place}",
        }
        for number, prompt in enumerate(uploads.prompts[:PREVIEWED], start=1)
    ]
    st.dataframe(rows, hide_index=True, key="preview", alt="The prompts read, with token counts")
    if len(uploads.prompts) > PREVIEWED:
        st.caption(f"The first {PREVIEWED} of {len(uploads.prompts):,} prompts.")
    if codec is None:
        st.caption("The number of tokens is known once the model is loaded.")


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
    """Return the prompts chosen for the comparison."""
    prompts = _uploads().prompts
    chosen = session().compare.chosen
    return tuple(prompts[number] for number in chosen if number < len(prompts))


def _head(text: str, limit: int) -> str:
    line = " ".join(text[: limit * 4].split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
