"""The engine of one collection, in a folder of its own."""

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path

import qdrant_edge as edge

from local.qdrant_node.errors import EngineFault, StartError, engine_faults
from local.qdrant_node.updates import Decision


@dataclass(slots=True)
class Shard:
    """An open engine, and whether it holds writes that only its write-ahead log has.

    A killed process loses nothing of them; `flush` keeps the log short and the next start fast.
    """

    folder: Path
    engine: edge.EdgeShard
    unflushed: bool = False

    def update(self, operation: edge.UpdateOperation) -> None:
        self.unflushed = True
        self.engine.update(operation)

    def write(self, decide: Decision) -> None:
        if (operation := decide(self.engine)) is not None:
            self.update(operation)

    def flush(self) -> None:
        if self.unflushed:
            self.engine.flush()
            self.unflushed = False

    def remove(self) -> None:
        self.engine.close()
        shutil.rmtree(self.folder)


def create_shard(folder: Path, config: edge.EdgeConfig) -> Shard:
    """An empty shard; a folder that could not become one is removed."""
    folder.mkdir(parents=True)
    with contextlib.ExitStack() as failed:
        failed.callback(shutil.rmtree, folder)
        shard = Shard(folder, edge.EdgeShard.create(str(folder), config))
        failed.pop_all()
    return shard


def load_shard(folder: Path, config: edge.EdgeConfig) -> Shard:
    """The shard in a folder, which may have been made with other settings than `config`."""
    try:
        with engine_faults():
            return Shard(folder, edge.EdgeShard.load(str(folder), config))
    except EngineFault as failure:
        raise StartError(f"{folder}: the collection cannot be opened ({failure})") from failure
