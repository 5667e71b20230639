"""The generate process. Only a model needs Redis and a provider; quoting needs neither."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from chassis.health import Dependency
from chassis.identity import Caller, Verifier, verifying_key
from chassis.serve import Close, Service, run, serve
from chassis.settings import load
from services.generate.extraction import Extraction
from services.generate.server import GenerateServicer
from services.generate.settings import GenerateSettings
from services.generate.task import Answering
from sluice.generate.v1.generate_pb2_grpc import add_GenerateServiceServicer_to_server


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to answer, what it depends on, and what is closed after it, in order."""

    answering: Answering
    needs_messages: bool
    dependencies: Sequence[Dependency] = ()
    close: Sequence[Close] = ()


def main() -> None:
    settings = load(GenerateSettings)
    run("generate", settings, partial(process, settings))


async def process(settings: GenerateSettings) -> None:
    mode = extractive(settings) if settings.answer_mode == "extractive" else generated(settings)
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


def extractive(settings: GenerateSettings) -> Mode:
    return Mode(Extraction(settings.calibration), needs_messages=False)


def generated(settings: GenerateSettings) -> Mode:
    # The provider's client takes more than a second to import, for nothing where there is no model.
    from providers.chat import ChatClient, ChatOptions  # noqa: PLC0415 - as above
    from services.generate.generation import Generation  # noqa: PLC0415 - as above

    bucket = settings.bucket("answers", settings.answer_limits())
    chat = ChatClient(
        base_url=settings.answer_base_url,
        api_key=settings.answer_api_key.get_secret_value(),
        model=settings.answer_model,
        bucket=bucket,
        attempt_timeout=settings.answer_attempt_seconds,
        interactive_wait=settings.interactive_wait_seconds,
        options=ChatOptions(
            output_tokens=settings.answer_output_tokens,
            limit_parameter=settings.answer_limit_parameter,
            temperature=settings.answer_temperature,
            reasoning_effort=settings.answer_reasoning_effort,
        ),
    )
    generation = Generation(
        chat,
        support_floor=settings.answer_support_floor,
        is_structured=settings.answer_structured_output,
    )
    redis = Dependency("redis", bucket.check)
    # A model that is down is an outcome, told in words; the process serves without it.
    provider = Dependency("provider", chat.reachable, needed=False)
    return Mode(generation, True, [redis, provider], [chat.close, bucket.close])


if __name__ == "__main__":
    main()
