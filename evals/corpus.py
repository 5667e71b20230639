"""What the source holds, against which labels are checked before anything is scored."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from chassis.errors import InvalidInput
from evals.case import Case, Judgment
from evals.gold import SHOWN, Gold
from evals.observed import Document

Corpus = Mapping[str, Document]


def revision(documents: Iterable[Document]) -> str:
    """One word for every live document and its content; the order does not matter."""
    lines = sorted(f"{document.id}\0{document.content}" for document in documents)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def check(gold: Gold, corpus: Corpus) -> None:
    """Whether every label is a document of the corpus, readable or hidden as the case says.

    Raises InvalidInput with a line a problem: file, case, field.
    """
    problems = [
        f"{gold.path}, case {case.id}: {problem}"
        for case in gold.cases
        for problem in _problems(case, corpus)
    ]
    if problems:
        more = len(problems) - SHOWN
        told = problems[:SHOWN] + ([f"and {more} more"] if more > 0 else [])
        raise InvalidInput("\n".join(told), field="document", reason="LABEL_NOT_IN_CORPUS")


def check_version(case: Case, version: str) -> None:
    """Raises InvalidInput where the case judges chunks of another version than was searched."""
    if case.by_chunk and case.chunking_version != version:
        raise InvalidInput(
            f"case {case.id}: relevant: judges chunks of {case.chunking_version!r}, but the corpus"
            f" is in chunks of {version!r}",
            field="relevant",
            reason="LABEL_NOT_IN_CORPUS",
        )


def hidden(shown: Iterable[str], case: Case, corpus: Corpus) -> Sequence[str]:
    """Documents among the shown that the asker may not see, by the case or by the corpus."""
    return [
        name
        for name in dict.fromkeys(shown)
        if name in case.restricted or (name in corpus and not corpus[name].is_for(case.asker))
    ]


def _problems(case: Case, corpus: Corpus) -> Iterable[str]:
    for at, judgment in enumerate(case.relevant or ()):
        for problem in _judgment(judgment, case, corpus):
            yield f"relevant[{at}]: {problem}"
    for at, name in enumerate(case.documents):
        if name not in corpus or not corpus[name].is_for(case.asker):
            yield f"documents[{at}]: {name} is not in the corpus for the asker"
    for at, name in enumerate(case.restricted):
        if name not in corpus:
            yield f"restricted[{at}]: {name} is not in the corpus"
        elif corpus[name].is_for(case.asker):
            yield f"restricted[{at}]: the asker may read {name}"


def _judgment(judgment: Judgment, case: Case, corpus: Corpus) -> Iterable[str]:
    document = corpus.get(judgment.document)
    if document is None:
        yield f"{judgment.document} is not in the corpus"
    elif judgment.grade and not document.is_for(case.asker):
        yield f"the asker may not read {judgment.document}"
    elif judgment.chunk is not None and judgment.chunk >= document.chunks:
        yield f"{judgment.document} has no chunk {judgment.chunk}"
