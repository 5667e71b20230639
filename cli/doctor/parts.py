"""Whether the parts that the processes call answer, in the contract that was agreed on."""

import time
from collections.abc import Callable

from capacity.inspection import Inspected, inspect
from capacity.pool import Workload
from capacity.refusals import CapacityUnavailable
from chassis import identity
from chassis.errors import ContractMismatch, Exhausted, SluiceError
from chassis.settings import PREFIX
from cli.doctor.finding import Finding, ok, problem, warning
from cli.doctor.setup import Setup
from corpus import collection
from corpus.failures import INDEX_MISSING
from corpus.profile import EmbeddingProfile
from corpus.settings import IndexSettings
from gateway.jobs.settings import JobSettings
from gateway.settings import GatewaySettings
from providers.embeddings import EmbeddingClient
from providers.failures import ProviderUnavailable
from providers.reach import reach
from providers.settings import AnswerSettings, CapacitySettings, EmbeddingSettings

Clock = Callable[[], float]

LIMIT = 2.0  # seconds
OLDEST = 7  # major version


async def redis(setup: Setup, clock: Clock = time.time) -> list[Finding]:
    settings = setup.of(CapacitySettings)
    if settings is None or not setup.is_there("REDIS_URL"):
        return []
    return await _store("redis", settings.redis_url, clock)


async def jobs(setup: Setup, clock: Clock = time.time) -> list[Finding]:
    settings = setup.of(JobSettings)
    if settings is None or not settings.jobs_redis_url or not setup.is_there("JOBS_REDIS_URL"):
        return []
    return await _store("jobs", settings.jobs_redis_url, clock)


async def _store(name: str, url: str, clock: Clock) -> list[Finding]:
    variable = f"{PREFIX}{'JOBS_' if name == 'jobs' else ''}REDIS_URL"
    try:
        found = await inspect(url, LIMIT, clock)
    except CapacityUnavailable as error:
        return [problem(name, error.message, f"start it, or mend {variable}")]
    return [_version(name, found), clocks(f"clock of {name}", found.ahead), *_keeping(name, found)]


def _version(name: str, found: Inspected) -> Finding:
    if int(found.version.partition(".")[0]) < OLDEST:
        return problem(name, f"is version {found.version}", f"use {OLDEST} or newer")
    return ok(name, f"answers, version {found.version}")


def _keeping(name: str, found: Inspected) -> list[Finding]:
    keeps = found.lasting is not False and found.policy == "noeviction"
    if name != "jobs" or keeps:
        return []
    mend = "start it with appendonly yes, appendfsync always and maxmemory-policy noeviction"
    return [problem(name, "may lose jobs that were accepted", mend)]


def clocks(part: str, ahead: float, inexact: float = 0.0) -> Finding:
    """`ahead` of ours in seconds, known to `inexact` seconds."""
    if abs(ahead) > identity.LEEWAY + inexact:
        said = f"{abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this machine's"
        mend = f"set both by NTP: from {identity.LEEWAY} s on tokens are refused"
        return problem(part, said, mend)
    return ok(part, "agrees with this machine's")


async def index(setup: Setup) -> list[Finding]:
    settings = setup.of(IndexSettings)
    if settings is None or not setup.is_there("QDRANT_URL"):
        return []
    client = collection.connect(settings.qdrant_url, settings.qdrant_api_key.get_secret_value())
    try:
        chunking = await collection.verify(client, settings.collection, settings.profile())
    except ContractMismatch as error:
        if error.reason == INDEX_MISSING:
            mend = "start ingest, which makes it; then bring documents in with `sluice ingest`"
            return [problem("index", error.message, mend)]
        mend = f"set {PREFIX}EMBEDDING_PROFILE to what it was made with, or `sluice reindex`"
        return [problem("index", error.message, mend)]
    except SluiceError as error:
        mend = f"start Qdrant, or mend {PREFIX}QDRANT_URL and {PREFIX}QDRANT_API_KEY"
        return [problem("index", error.message, mend)]
    finally:
        await client.close()
    return [ok("index", f"contract {settings.profile().id}, {chunking}")]


async def embeddings(setup: Setup) -> list[Finding]:
    """Embeds one word, in the allowance that holds for all; nothing where nobody can grant it."""
    settings = setup.of(EmbeddingSettings)
    if settings is None or not setup.is_there("EMBEDDING_BASE_URL"):
        return []
    try:
        await reach(settings.embedding_base_url)
        await inspect(settings.redis_url, LIMIT)
        await _embed(settings)
    except ProviderUnavailable as error:
        mend = f"start the endpoint, or mend {PREFIX}EMBEDDING_BASE_URL"
        return [problem("embeddings", error.message, mend)]
    except (CapacityUnavailable, Exhausted):
        return [warning("embeddings", "takes connections; not tried for want of room", "try later")]
    except SluiceError as error:
        names = ("PROFILE", "MODEL", "BASE_URL", "API_KEY")
        mend = f"mend {', '.join(f'{PREFIX}EMBEDDING_{name}' for name in names)}: {error.reason}"
        return [problem("embeddings", error.message, mend)]
    return [ok("embeddings", f"gives {_profile(settings).dimensions} dimensions, as agreed")]


def _profile(settings: EmbeddingSettings) -> EmbeddingProfile:
    # Whoever embeds has an index to embed for.
    if not isinstance(settings, IndexSettings):
        raise TypeError(f"{type(settings).__name__} has no embedding profile")
    return settings.profile()


async def _embed(settings: EmbeddingSettings) -> None:
    profile = _profile(settings)
    bucket = settings.bucket("embeddings", settings.embedding_limits())
    client = EmbeddingClient(
        base_url=settings.embedding_base_url,
        api_key=settings.embedding_key(),
        model=settings.embedding_model or profile.model,
        dimensions=profile.dimensions,
        bucket=bucket,
        attempt_timeout=settings.embedding_attempt_seconds,
    )
    try:
        # E5 models demand the word before it; to others it is one more.
        await client.embed(["query: doctor"], [0], Workload.BATCH)
    finally:
        await client.close()
        await bucket.close()


async def outside(setup: Setup) -> list[Finding]:
    """The provider of answers and the issuer of tokens, by a connection that asks nothing."""
    found = []
    answers, gateway = setup.of(AnswerSettings), setup.of(GatewaySettings)
    if answers is not None and answers.answer_mode == "generated":
        found.append(await _reached("answers", answers.answer_base_url, "ANSWER_BASE_URL"))
    if gateway is not None and gateway.issuer_jwks_url:
        found.append(await _reached("issuer", gateway.issuer_jwks_url, "ISSUER_JWKS_URL"))
    return found


async def _reached(part: str, url: str, variable: str) -> Finding:
    try:
        await reach(url)
    except ProviderUnavailable as error:
        return problem(part, error.message, f"mend {PREFIX}{variable}, or the way there")
    return ok(part, "takes connections")
