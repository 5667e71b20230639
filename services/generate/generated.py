"""Answers by a model, as the settings say: its candidates, their pools, the cache, the policy."""

from chassis.health import Dependency
from providers.chat import ChatClient
from services.generate.cache import AnswerCache
from services.generate.candidate import Candidate
from services.generate.extraction import Extraction
from services.generate.mode import Mode
from services.generate.pipeline import Memory, Pipeline, Policy
from services.generate.roster import Admission, Admitted
from services.generate.settings import GenerateSettings


def generated(settings: GenerateSettings) -> Mode:
    roster = _roster(settings)
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
    pipeline = Pipeline.of(
        candidates,
        _policy(settings),
        memory=_memory(settings, cache),
        extraction=_extraction(settings),
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


def _roster(settings: GenerateSettings) -> list[Admitted]:
    admission = Admission(settings.answer_support_floor, settings.answer_max_cost is not None)
    return admission.roster(
        settings.answer_endpoint(), settings.answer_qualification, settings.listed()
    )


def _memory(settings: GenerateSettings, cache: AnswerCache) -> Memory | None:
    if not settings.answer_cache_seconds:
        return None
    return Memory(
        cache,
        settings.cache_secret,
        fresh=settings.answer_cache_seconds,
        stale=settings.answer_max_stale,
        replays_streams=settings.answer_replay_cached_streams,
    )


def _policy(settings: GenerateSettings) -> Policy:
    return Policy(
        settings.budget,
        limit=settings.generate_seconds,
        floor=settings.answer_support_floor,
        release=settings.answer_release,
        on_invalid=settings.answer_invalid_output,
    )


def _extraction(settings: GenerateSettings) -> Extraction | None:
    return Extraction(settings.calibration) if settings.answer_extractive_fallback else None
