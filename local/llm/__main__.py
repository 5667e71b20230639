import signal
import threading
import time

import structlog

from chassis import logs
from chassis.settings import load
from local.failures import Refused
from local.llm import bundle
from local.llm.engine import Engine, EngineFailure
from local.llm.settings import LlmSettings

EXIT_REFUSED = 2
EXIT_CANNOT_START = 3
LOOK_EVERY = 0.05  # seconds

log = structlog.get_logger()


def main() -> None:
    settings = load(LlmSettings)
    logs.start("llm", settings.log_level)
    asked = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda _number, _frame: asked.set())
    engine = started(settings)
    log.info("listening", port=settings.llm_port, model=bundle.MODEL, slots=settings.llm_slots)
    asked.wait()
    drain(engine, settings.grace_seconds)
    engine.close()


def started(settings: LlmSettings) -> Engine:
    """The engine, or the end of the process with a line that says what helps."""
    try:
        return Engine(bundle.weights(), bundle.MODEL, settings)
    except Refused as refusal:
        log.error("not_installed", mend=refusal.message)  # noqa: TRY400 - the command is what helps
        raise SystemExit(EXIT_REFUSED) from None
    except EngineFailure:
        log.error(  # noqa: TRY400 - the engine has said more above
            "cannot_start",
            port=settings.llm_port,
            mend="free the port or set SLUICE_LLM_PORT; else see the engine's lines above",
        )
        raise SystemExit(EXIT_CANNOT_START) from None


def drain(engine: Engine, grace: float) -> None:
    """Let answers that are being written end, for at most `grace` seconds."""
    end = time.monotonic() + grace
    while engine.is_busy() and time.monotonic() < end:
        time.sleep(LOOK_EVERY)


if __name__ == "__main__":
    main()
