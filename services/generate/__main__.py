"""The generate process. Only a model needs Redis and a provider; quoting needs neither."""

from functools import partial

from chassis.identity import Caller, Verifier, verifying_key
from chassis.serve import Service, run, serve
from chassis.settings import load
from services.generate.extraction import Extraction
from services.generate.mode import Mode
from services.generate.server import GenerateServicer
from services.generate.settings import GenerateSettings
from sluice.generate.v1.generate_pb2_grpc import add_GenerateServiceServicer_to_server


def main() -> None:
    settings = load(GenerateSettings)
    run("generate", settings, partial(process, settings))


async def process(settings: GenerateSettings) -> None:
    mode = mode_of(settings)
    servicer = GenerateServicer(mode.answering, settings.guard, needs_messages=mode.needs_messages)
    verifier = Verifier(verifying_key(settings.internal_verify_key), "generate")

    async def verify(token: str) -> Caller:
        return verifier.verify(token)

    add = partial(add_GenerateServiceServicer_to_server, servicer)
    await serve(
        settings.port,
        settings,
        services=[Service("sluice.generate.v1.GenerateService", add)],
        verify=verify,
        limit=settings.generate_seconds,
        dependencies=mode.dependencies,
        close=mode.close,
    )


def mode_of(settings: GenerateSettings) -> Mode:
    if settings.answer_mode == "extractive":
        return extractive(settings)
    # The provider's client takes more than a second to import, for nothing where there is no model.
    from services.generate.generated import generated  # noqa: PLC0415 - as above

    return generated(settings)


def extractive(settings: GenerateSettings) -> Mode:
    return Mode(Extraction(settings.calibration), needs_messages=False)


if __name__ == "__main__":
    main()
