"""A backend whose batch requests can join and leave: the prompt of each is fed in a lane apart.

Once the prompt is fed whole, its row joins the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

from inference.engine.backend import TorchBackend
from inference.engine.cache_rows import CacheLane, fill, join, keep, rows_obstacle
from inference.engine.caches import build_cache
from inference.records.errors import BackendError, InputError
from inference.records.options import CacheKind


class TorchRowBackend(TorchBackend):
    """Runs a transformers model whose rows come and go."""

    def check_rows(self) -> None:
        """Raise unless rows can join and leave.

        Raises:
            InputError: The model keeps something that cannot be lined up.
        """
        obstacle = rows_obstacle(self._model)
        if obstacle:
            msg = f"{self._model.config.model_type} cannot run a continuous batch: {obstacle}; use "
            msg += "the static policy"
            raise InputError(msg)

    def new_lane(self) -> CacheLane:
        """Return an empty cache beside the batch's, to feed a prompt into."""
        return CacheLane(cache=build_cache(self._model, CacheKind.DYNAMIC, None))

    def join(self, arrival: CacheLane) -> None:
        """Put the rows of a lane behind those of the batch, which takes its tensors over.

        Raises:
            BackendError: No prompt was fed into the lane.
        """
        if not arrival.columns:
            msg = "no prompt was fed apart from the batch; feed one into the lane first"
            raise BackendError(msg)
        if self.batch.columns:
            join(self.batch, arrival)
        else:
            self._batch = arrival

    def keep_rows(self, rows: Sequence[int]) -> None:
        """Keep only these rows of the batch, in this order; none at all empties it."""
        batch = self.batch
        if list(rows) == list(range(batch.rows)):
            return
        if rows:
            keep(batch, rows)
        else:
            self._batch = self.new_lane()

    def fill(self, rows: int, columns: int) -> None:
        """Start a batch of this many rows and columns that holds copies of one token.

        Raises:
            InputError: The model's cache cannot be filled this way.
        """
        self.check_rows()
        super().start()  # a subclass whose start() fills the cache calls this
        self.forward([[1]])
        fill(self.batch, rows, columns)
