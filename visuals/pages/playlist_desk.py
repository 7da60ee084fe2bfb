"""What a press on the Playlists page does to the playlists: each change is kept, and can be undone.

No Streamlit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from inference.records.errors import TokenByTokenError
from inference.runs.playlist_store import PlaylistStore
from inference.runs.playlists import Playlist
from inference.runs.store import RunStore
from visuals.pages.page_states import PlaylistsPageState

MOST_UNDONE = 20
Edit = Callable[[Playlist], Playlist]


@dataclass(frozen=True, slots=True)
class PlaylistDesk:
    """One browser tab at work on the playlists.

    Attributes:
        runs: The kept runs.
        playlists: Keeps the lists.
        state: Of the tab; its sentence says why the last press did nothing.
    """

    runs: RunStore
    playlists: PlaylistStore
    state: PlaylistsPageState

    def take(self, key: str) -> None:
        """Have changes be those of this playlist; what was changed in another stays as it is."""
        if self.state.key != key:
            self.state.key, self.state.former, self.state.sentence = key, (), ""

    def change(self, edit: Edit) -> None:
        """Change the playlist as it stands on disk."""
        with_former: list[Playlist] = []

        def act() -> None:
            former = self.playlists.open(self.state.key)
            changed = edit(former)
            if changed != former:
                self.playlists.save(changed, self.state.key)
                with_former.append(former)

        self._try(act)
        self.state.former = (*self.state.former, *with_former)[-MOST_UNDONE:]

    def rearrange(self, edit: Edit) -> None:
        """Change which items stand where; their widgets are then drawn anew."""
        self.change(edit)
        self.state.revision += 1

    def undo(self) -> None:
        """Bring back the playlist as it was before the last change."""
        if not self.state.former:
            return
        *earlier, former = self.state.former
        if self._try(lambda: self.playlists.save(former, self.state.key)):
            self.state.former = tuple(earlier)
            self.state.revision += 1

    def begin(self, playlist: Playlist) -> str:
        """Keep another playlist and return its key; empty where it cannot be kept."""
        keys: list[str] = []
        self._try(lambda: keys.append(self.playlists.save(playlist)))
        return "".join(keys)

    def delete(self) -> bool:
        """Put the playlist aside, and tell whether that could be done."""
        is_done = self._try(lambda: self.playlists.delete(self.state.key))
        if is_done:
            self.state.deleted = self.state.key
        return is_done

    def restore(self) -> None:
        """Bring back the playlist deleted last."""
        key, self.state.deleted = self.state.deleted, ""
        self._try(lambda: self.playlists.restore(key))

    def _try(self, act: Callable[[], object]) -> bool:
        """Do something to the store, or keep the sentence why it could not be done."""
        self.state.sentence = ""
        try:
            act()
        except TokenByTokenError as error:
            self.state.sentence = str(error)
        return not self.state.sentence
