"""Settings of the index, for the stages that read or write it to inherit from."""

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from chassis.settings import PREFIX
from corpus import profile
from corpus.collection import DEFAULT_ALIAS
from corpus.profile import EmbeddingProfile


class IndexSettings(BaseSettings):
    """Where the passages are, and how they were embedded."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore")

    qdrant_url: str = Field(
        "http://127.0.0.1:6334",
        pattern=r"^https?://[^\s/:]+:\d+/?$",
        description="gRPC endpoint of Qdrant, with its port",
        examples=["http://qdrant:6334"],
    )
    qdrant_api_key: SecretStr = Field(
        SecretStr(""),
        description="key of the Qdrant endpoint; local ones need none",
        examples=["..."],
    )
    collection: str = Field(
        DEFAULT_ALIAS,
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        description="alias of the collection that holds the passages",
        examples=[DEFAULT_ALIAS],
    )
    embedding_profile: str = Field(
        profile.DEFAULT,
        description="how passages and questions are embedded",
        examples=list(profile.PROFILES),
    )

    @field_validator("embedding_profile")
    @classmethod
    def _profile_is_known(cls, value: str) -> str:
        return profile.profile(value).id

    def profile(self) -> EmbeddingProfile:
        """The embedding profile that is set."""
        return profile.profile(self.embedding_profile)
