"""The generate process. Only a model needs Redis and a provider; quoting needs neither."""

from functools import partial

from capacity import SharedBucket
from chassis.health import Dependency
from chassis.identity import Caller, Verifier, verifying_key
from chassis.serve import Close, Service, run, serve
from chassis.settings import load
from providers.chat import ChatClient, ChatOptions
from services.generate.extraction import Extraction
from services.generate.generation import Generation
from services.generate.server import GenerateServicer
from services.generate.settings import GenerateSettings
from sluice.generate.v1.generate_pb2_grpc import add_GenerateServiceServicer_to_server


def main() -> None:
    settings = load(GenerateSettings)
    run("generate", settings, partial(process, settings))


async def process(settings: GenerateSettings) -> None:
    dependencies: list[Dependency] = []
    close: list[Close] = []
    if settings.answer_mode == "extractive":
        servicer = GenerateServicer(
            Extraction(settings.calibration), settings.guard, needs_messages=False
        )
    else:
        bucket = SharedBucket.connect(
            settings.redis_url,
            "answers",
            settings.answer_limits(),
            local_share=settings.local_share,
            max_processes=settings.max_processes,
            ramp_seconds=settings.cooldown_ramp_seconds,
        )
        chat = _chat(settings, bucket)
        generation = Generation(
            chat,
            support_floor=settings.answer_support_floor,
            is_structured=settings.answer_structured_output,
        )
        servicer = GenerateServicer(generation, settings.guard, needs_messages=True)
        dependencies = [
            Dependency("redis", bucket.check),
            Dependency("provider", chat.reachable, needed=False),
        ]
        close = [chat.close, bucket.close]
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
        dependencies=dependencies,
        close=close,
    )


def _chat(settings: GenerateSettings, bucket: SharedBucket) -> ChatClient:
    return ChatClient(
        base_url=settings.answer_base_url,
        api_key=settings.answer_api_key.get_secret_value(),
        model=settings.answer_model,
        bucket=bucket,
        attempt_timeout=settings.answer_attempt_seconds,
        options=ChatOptions(
            output_tokens=settings.answer_output_tokens,
            limit_parameter=settings.answer_limit_parameter,
            temperature=settings.answer_temperature,
            reasoning_effort=settings.answer_reasoning_effort,
        ),
    )


if __name__ == "__main__":
    main()
