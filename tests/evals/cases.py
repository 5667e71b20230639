"""A small gold case, corpus, passages and answers, to vary in tests."""

from dataclasses import replace
from typing import Any

from evals.case import Case
from evals.observed import Answer, Document, Found, Mark, Passage, Source

TEXT = "Deploys run on Monday. [S1]"
DOCUMENTS = {
    "a.md": Document("a.md", "h1", "team", (), "published", 3),
    "b.md": Document("b.md", "h2", "public", (), "published", 2),
    "groups.md": Document("groups.md", "h3", "public", ("finance",), "published", 1),
    "draft.md": Document("draft.md", "h4", "public", (), "draft", 1),
    "secret.md": Document("secret.md", "h5", "restricted", (), "published", 1),
}


def case(**changed: Any) -> Case:  # noqa: ANN401 - fields of a case
    """Answerable by a.md unless told otherwise."""
    fields = {
        "id": "one",
        "category": "plain",
        "question": "When?",
        "relevant": [{"document": "a.md", "grade": 2}, {"document": "b.md", "grade": 1}],
    }
    return Case.model_validate({**fields, **changed})


def unanswerable(**changed: Any) -> Case:  # noqa: ANN401 - fields of a case
    return case(**{"id": "none", "category": "nothing", "relevant": None, **changed})


def found(*places: tuple[str, int], **changed: Any) -> Found:  # noqa: ANN401 - fields of Found
    """Passages of these documents and chunks in this order."""
    passages = tuple(
        Passage(document, chunk, 1 - at / 100, f"text of {document}")
        for at, (document, chunk) in enumerate(places)
    )
    return replace(Found(passages, "COSINE", 1, "profile", "v1", 0.25), **changed)


def answer(**changed: Any) -> Answer:  # noqa: ANN401 - fields of an answer
    """An extractive answer from a.md."""
    plain = Answer(
        mode="EXTRACTIVE",
        reason="NONE",
        acceptance="ACCEPTED",
        text=TEXT,
        marks=(Mark("S1", 0, len(TEXT), 1.0),),
        sources=(Source("S1", "a.md", "Deploys run on  Monday. Fridays are free.", "team"),),
        seconds=0.5,
        stages={"retrieve": 0.1},
        input_tokens=None,
        output_tokens=None,
        model="",
        instructions="en-1",
        candidate="",
        cached=False,
        switched=False,
        shown=TEXT,
    )
    return replace(plain, **changed)


def abstained(**changed: Any) -> Answer:  # noqa: ANN401 - fields of an answer
    return answer(
        **{
            "mode": "ABSTAINED",
            "reason": "EVIDENCE_INSUFFICIENT",
            "acceptance": "",
            "text": "",
            "marks": (),
            "sources": (),
            "shown": "",
            **changed,
        }
    )
