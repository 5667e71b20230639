from services.generate.evidence import Scores, Source
from services.generate.extract import Calibration
from services.generate.extraction import MOST_WEIGHED, Extraction
from services.generate.result import Result, Spent
from services.generate.task import Task
from services.generate.verdict import Abstained, AbstainedReason, Extractive, ExtractiveReason
from tests.generate.sources import code, prose, source

QUESTION = "How do I scale the Capstan workers?"
SOURCES = (
    source(
        "S1",
        prose(
            "🚢 The Capstan workers scale to 12 replicas. Capstan workers scale back to 4 later."
        ),
        score=0.9,
    ),
    source("S2", code("slipway scale capstan workers"), score=0.9),
)
NOTHING = Result(Abstained(AbstainedReason.NOTHING_FOUND))
INSUFFICIENT = Result(Abstained(AbstainedReason.EVIDENCE_INSUFFICIENT))
EXTRACTION = Extraction(Calibration(0.8, 0.9, 0.5))


async def answer(*sources: Source, question: str = QUESTION) -> Result:
    return await EXTRACTION.answer(Task("demo", question, (), sources, Scores.COSINE, 0))


async def test_quotations_are_cited_by_code_points_and_fully_supported() -> None:
    result = await answer(*SOURCES)
    assert result.verdict == Extractive(ExtractiveReason.NONE)
    assert result.spent == Spent()
    shown = [(c.label, result.text[c.start : c.end], c.support) for c in result.citations]
    assert shown == [
        ("S1", "🚢 The Capstan workers scale to 12 replicas. [S1]", 1.0),
        ("S1", "Capstan workers scale back to 4 later. [S1]", 1.0),
        ("S2", "slipway scale capstan workers [S2]", 1.0),
    ]
    assert "[S1] Capstan" in result.text
    assert "[S1]\nslipway" in result.text


async def test_without_sources_nothing_was_found() -> None:
    assert await answer() == NOTHING


async def test_weak_evidence_is_an_abstention() -> None:
    assert await answer(*SOURCES, question="Who pays for lunch?") == INSUFFICIENT


async def test_what_resembles_instructions_is_not_quoted() -> None:
    suspected = source("S1", *SOURCES[0].blocks, score=0.9, is_suspected=True)
    assert await answer(suspected) == INSUFFICIENT


async def test_sources_beyond_what_can_be_weighed_are_left_out() -> None:
    long = source("S1", prose("Noise. " * (MOST_WEIGHED // 7 + 1)), score=0.9)
    assert await answer(long, source("S2", *SOURCES[0].blocks)) == INSUFFICIENT
