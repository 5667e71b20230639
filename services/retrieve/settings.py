"""What the retrieve process is told."""

from typing import Literal

from pydantic import Field, field_validator

from chassis.settings import StageSettings
from corpus.settings import IndexSettings
from providers.settings import EmbeddingSettings
from services.retrieve.fuse import Fusion, Space
from services.retrieve.search import Mode, Ranking
from services.retrieve.wire import LARGEST_TOP_K, Defaults


class RetrieveSettings(StageSettings, IndexSettings, EmbeddingSettings):
    port: int = Field(50052, ge=1, le=65535, description="gRPC port", examples=["50052"])
    top_k: int = Field(
        8, ge=1, le=LARGEST_TOP_K, description="passages where none are asked for", examples=["8"]
    )
    search_mode: Literal["dense", "sparse", "fused"] = Field(
        "fused",
        description="what passages are found by: embeddings, words, or both",
        examples=["fused"],
    )
    fusion: Literal["min_max", "rrf"] = Field(
        "min_max",
        description="how both are fused: by their scores, or by their ranks alone",
        examples=["min_max"],
    )
    dense_weight: float = Field(
        0.6,
        ge=0,
        le=1,
        description="how much embeddings count at least when both do; more where words tell little",
        examples=["0.6"],
    )
    search_candidates: int = Field(
        50, ge=1, le=1_000, description="passages by each that are chosen among", examples=["50"]
    )
    diversity: float = Field(
        0.0,
        ge=0,
        le=1,
        description="how much differing from better passages counts; 0 ranks by score alone",
        examples=["0.3"],
    )
    remembered_questions: int = Field(
        2_048,
        ge=0,
        le=1_000_000,
        description="questions whose embeddings are kept in memory",
        examples=["2048"],
    )
    score_threshold_cosine: float | None = Field(
        None,
        ge=-1,
        le=1,
        description="least score of a passage found by embeddings; every one passes when empty",
        examples=["0.8"],
    )
    score_threshold_bm25: float | None = Field(
        None, ge=0, description="the same for one found by words", examples=["5"]
    )
    score_threshold_rrf: float | None = Field(
        None, ge=0, le=1, description="the same for one fused by ranks", examples=["0.02"]
    )
    score_threshold_min_max: float | None = Field(
        None, ge=0, le=1, description="the same for one fused by scores", examples=["0.3"]
    )

    @field_validator(*(f"score_threshold_{space.name.lower()}" for space in Space), mode="before")
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        return None if value == "" else value

    @property
    def ranking(self) -> Ranking:
        thresholds = {
            Space.COSINE: self.score_threshold_cosine,
            Space.BM25: self.score_threshold_bm25,
            Space.RRF: self.score_threshold_rrf,
            Space.MIN_MAX: self.score_threshold_min_max,
        }
        return Ranking(
            fusion=Fusion(Space[self.fusion.upper()], self.dense_weight),
            candidates=self.search_candidates,
            thresholds={space: least for space, least in thresholds.items() if least is not None},
        )

    @property
    def defaults(self) -> Defaults:
        return Defaults(self.top_k, Mode[self.search_mode.upper()], self.diversity)
