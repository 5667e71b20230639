"""How well the passages for one question fit its judgments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chassis.errors import InvalidInput
from evals import corpus, ranking
from evals.case import Case, Identity
from evals.corpus import Corpus
from evals.observed import Found, Passage

KS = (1, 3, 5, 10)
# Passages to ask for. Where documents are judged, several of one document are one result. Not more
# than retrieve chooses among by itself, or scores would be fused over other lists than for people.
DEPTH_OF_CHUNKS = max(KS)
DEPTH_OF_DOCUMENTS = 50


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The score of one case. `measures` such as ndcg@10, without judgments none; `seconds` waited.

    `ranked` are the documents, or document and chunk, as far as the deepest measure looks; `best`
    is the score of the first passage, `fitting` of the first relevant one, None without any.
    """

    measures: Mapping[str, float]
    ranked: Sequence[str]
    leaks: Sequence[str]
    best: float | None
    fitting: float | None
    seconds: float


def depth(case: Case) -> int:
    """How many passages the case needs for every measure."""
    return DEPTH_OF_CHUNKS if case.by_chunk else DEPTH_OF_DOCUMENTS


def score(case: Case, found: Found, documents: Corpus) -> Retrieved:
    """Raises InvalidInput that names the case where the ranking cannot be scored."""
    try:
        corpus.check_version(case, found.chunking_version)
        _check_once(found.passages)
        ranked = _ranked(case, found.passages)
        measures = _measures(case, ranked) if case.relevant else {}
    except InvalidInput as error:
        raise InvalidInput(f"case {case.id}: {error.message}", field=error.field) from error
    shown = (passage.document for passage in found.passages)
    leaks = [*corpus.hidden(shown, case, documents), *_secrets(case, found.passages)]
    scores = [passage.score for passage in found.passages]
    fitting = [one.score for one in found.passages if one.document in case.bearing]
    return Retrieved(
        measures=measures,
        ranked=[_label(one) for one in ranked[: max(KS)]],
        leaks=leaks,
        best=max(scores, default=None),
        fitting=max(fitting, default=None),
        seconds=found.seconds,
    )


def _check_once(passages: Sequence[Passage]) -> None:
    """A passage that comes back twice is a fault, whatever is judged."""
    ranking.grades([(one.document, one.chunk) for one in passages], {}, complete=False)


def _ranked(case: Case, passages: Sequence[Passage]) -> list[Identity]:
    if case.by_chunk:
        return [(passage.document, passage.chunk) for passage in passages]
    return [*ranking.first_of_each(passage.document for passage in passages)]


def _measures(case: Case, ranked: Sequence[Identity]) -> dict[str, float]:
    judged = case.grades
    grades = ranking.grades(ranked[: max(KS)], judged, complete=case.complete)
    measures = {}
    for k in KS:
        measures[f"precision@{k}"] = ranking.precision(grades, k)
        measures[f"recall@{k}"] = ranking.recall(grades, judged.values(), k)
        measures[f"hit@{k}"] = ranking.hit(grades, k)
        measures[f"rr@{k}"] = ranking.reciprocal_rank(grades, k)
        measures[f"ndcg@{k}"] = ranking.ndcg(grades, judged.values(), k)
    return measures


def _secrets(case: Case, passages: Sequence[Passage]) -> list[str]:
    return [secret for secret in case.secret if any(secret in one.text for one in passages)]


def _label(identity: Identity) -> str:
    return identity if isinstance(identity, str) else f"{identity[0]}#{identity[1]}"
