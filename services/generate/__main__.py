"""The generate process. Only a model needs Redis and a provider; quoting needs neither."""

from __future__ import annotations  # the model's parts are imported only where there is a model

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from chassis.health import Dependency
from chassis.identity import Caller, Verifier, verifying_key
from chassis.serve import Close, Service, run, serve
from chassis.settings import load
from services.generate.extraction import Extraction
from services.generate.roster import Admission
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
    from providers.chat import ChatClient  # noqa: PLC0415 - as above
    from services.generate.cache import AnswerCache  # noqa: PLC0415 - as above
    from services.generate.candidate import Candidate  # noqa: PLC0415 - as above
    from services.generate.pipeline import Memory, Pipeline, Policy  # noqa: PLC0415 - as above

    admission = Admission(settings.answer_support_floor, settings.answer_max_cost is not None)
    roster = admission.roster(
        settings.answer_endpoint(), settings.answer_qualification, settings.listed()
    )
    buckets = {
        endpoint.pool: settings.bucket(endpoint.pool, endpoint.limits)
        for endpoint in (admitted.endpoint for admitted in roster)
    }
    patience = settings.interactive_wait_seconds
    candidates = [
        Candidate.of(
            ChatClient.of(each.endpoint, buckets[each.endpoint.pool], patience=patience),
            each.endpoint,
            each.qualification,
        )
        for each in roster
    ]
    cache = AnswerCache.connect(
        settings.redis_url,
        kept=settings.answer_max_stale,
        limit=settings.capacity_decision_seconds,
    )
    memory = Memory(
        cache,
        settings.cache_secret,
        fresh=settings.answer_cache_seconds,
        stale=settings.answer_max_stale,
        replays_streams=settings.answer_replay_cached_streams,
    )
    policy = Policy(
        settings.budget,
        limit=settings.generate_seconds,
        floor=settings.answer_support_floor,
        release=settings.answer_release,
        on_invalid=settings.answer_invalid_output,
    )
    pipeline = Pipeline.of(
        candidates,
        policy,
        memory=memory if settings.answer_cache_seconds else None,
        extraction=Extraction(settings.calibration)
        if settings.answer_extractive_fallback
        else None,
    )
    # A model that is down is an outcome, told in words; the process serves without it.
    providers = [
        Dependency(f"provider-{each.endpoint.id}", each.chat.reachable, needed=False)
        for each in candidates
    ]
    pools = [Dependency(f"pool-{pool}", bucket.check) for pool, bucket in buckets.items()]
    close = [
        *(each.chat.close for each in candidates),
        *(bucket.close for bucket in buckets.values()),
        cache.close,
    ]
    return Mode(pipeline, True, [*pools, *providers], close)


if __name__ == "__main__":
    main()
