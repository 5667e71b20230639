"""llama.cpp as xllamacpp packages it. Nothing else here knows that library."""

import json
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import xllamacpp

from local.llm.settings import LlmSettings

WARNINGS = 2  # what the engine logs above holds each request's figures, a line a second
ASK_LIMIT = 5.0  # seconds
BATCH = 128  # tokens


class EngineFailure(Exception):
    """The engine did not start; it has written why."""


class Engine:
    """The server, which listens while this object is open."""

    def __init__(self, weights: Path, name: str, settings: LlmSettings) -> None:
        try:
            self._server = xllamacpp.Server(_parameters(weights, name, settings))
        except RuntimeError as error:
            raise EngineFailure from error
        self._address = (settings.host, settings.llm_port)

    def is_busy(self) -> bool:
        """Whether an answer is being written; True when it is too busy to say."""
        with closing(HTTPConnection(*self._address, timeout=ASK_LIMIT)) as connection:
            try:
                connection.request("GET", "/slots")
                return any(slot["is_processing"] for slot in json.load(connection.getresponse()))
            except (OSError, HTTPException):
                return True

    def close(self) -> None:
        """Cut what is being written and stop listening."""
        del self._server


def _parameters(weights: Path, name: str, settings: LlmSettings) -> xllamacpp.CommonParams:
    told = xllamacpp.CommonParams()
    told.model.path = str(weights)
    told.model_alias = {name}
    told.hostnames = [settings.host]
    told.port = settings.llm_port
    told.n_parallel = settings.llm_slots
    told.n_ctx = settings.llm_slots * settings.llm_window
    # Threads wait for each other after every layer: one that the system put aside holds up all.
    # Two on a busy machine of two cores wrote 2 tokens a second, one alone 20.
    told.cpuparams.n_threads = settings.llm_threads
    told.cpuparams_batch.n_threads = settings.llm_threads
    # Between batches the engine looks who has left; at 60 tokens a second one takes two seconds.
    told.n_batch = told.n_ubatch = BATCH
    told.endpoint_slots = told.endpoint_metrics = True
    told.ui = False
    told.cors_origins = ""  # no web page has business here
    told.verbosity = WARNINGS
    return told
