import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.generate.evidence import Block, Kind, Scores, Source
from services.generate.extract import MOST_QUOTES, Calibration, extract
from tests.generate.sources import code, prose, source, table

CALIBRATION = Calibration(score_low=0.8, score_high=0.9, least_support=0.52)

DEPLOY = source(
    "S1",
    prose(
        "The production deploy window is Monday to Thursday, 09:30 to 15:30 harbour time."
        " The window ends early so that a bad release shows itself before the evening."
    ),
    title="Deploy policy",
    headings=("Window",),
    score=0.91,
)
QUEUES = source(
    "S2",
    prose("The Capstan worker pool may be scaled to 12 replicas without asking anybody."),
    code("slipway scale capstan --replicas 12\nslipway status capstan"),
    title="Clear a queue backlog",
    headings=("Scale the workers",),
    score=0.88,
)
RETENTION = source(
    "S3",
    table(
        "| data | kept for | afterwards |\n|---|---|---|\n"
        "| camera footage | 21 days | overwritten |\n| application logs | 30 days | deleted |"
    ),
    title="Data retention policy",
    score=0.86,
)
FERRY = source(
    "S4",
    prose(
        "As viagens são suspensas quando o vento médio ultrapassa 38 nós durante 20 minutos."
        " A decisão é do capitão do porto."
    ),
    title="Plano de tempestade",
    score=0.83,
)
SOURCES = (DEPLOY, QUEUES, RETENTION, FERRY)


def quotes(question: str, *given: Source, scores: Scores = Scores.COSINE) -> list[tuple[str, str]]:
    found = extract(question, given or SOURCES, scores, CALIBRATION)
    return [(piece.source.label, piece.text) for piece in found]


def test_the_sentence_that_answers_is_quoted() -> None:
    assert quotes("When is the production deploy window?") == [
        ("S1", "The production deploy window is Monday to Thursday, 09:30 to 15:30 harbour time.")
    ]


def test_the_row_of_a_table_is_quoted_as_it_is() -> None:
    assert ("S3", "| camera footage | 21 days | overwritten |") in quotes(
        "How long is camera footage kept?"
    )


def test_a_line_of_code_is_quoted_as_it_is() -> None:
    found = quotes("How do I scale the Capstan workers?")
    assert ("S2", "slipway scale capstan --replicas 12") in found


def test_each_part_of_a_double_question_is_answered_in_source_order() -> None:
    found = quotes("How long is camera footage kept, and when is the production deploy window?")
    assert found[0][0] == "S1"
    assert {label for label, _ in found} >= {"S1", "S3"}
    assert len(found) <= MOST_QUOTES


@pytest.mark.parametrize(
    "question",
    [
        "How many weeks of parental leave do employees get?",
        "Which version of Kubernetes does the production cluster run?",
        "Who founded the company?",
        "What does a cabin on the night ferry cost?",
        "Kann ich mein Fahrrad kostenlos mitnehmen?",
        "Quantos dias de férias tem cada empregado?",
        "?",
        "the of and",
    ],
)
def test_what_the_sources_do_not_answer_is_not_answered(question: str) -> None:
    assert quotes(question) == []


def test_a_name_that_no_source_has_is_not_answered_whatever_else_fits() -> None:
    assert quotes("When is the production deploy window of Zanzibar?") == []
    assert quotes("When does KubeWindowDown fire in the production deploy window?") == []


def test_a_question_for_a_number_is_not_answered_without_one() -> None:
    crew = source("S1", prose("Every crew carries handheld scanners."), score=0.87)
    assert quotes("How many handheld scanners does every crew carry?", crew) == []
    counted = source("S1", prose("Every crew carries two handheld scanners."), score=0.87)
    assert quotes("How many handheld scanners does every crew carry?", counted) != []


def test_a_question_for_a_price_is_not_answered_without_one() -> None:
    canary = source("S1", prose("A canary release receives 5 percent of traffic."), score=0.87)
    assert quotes("What does a canary release cost?", canary) == []


def test_a_sentence_that_only_repeats_the_question_comes_after_one_that_tells() -> None:
    said = source(
        "S1",
        prose("The entries are close to the limit. Migrate pods away from entries at the limit."),
        score=0.9,
    )
    found = extract("What if entries are close to the limit?", [said], Scores.COSINE, CALIBRATION)
    assert "Migrate pods away from entries at the limit." in [piece.text for piece in found]


def test_what_two_sources_say_word_for_word_is_quoted_once() -> None:
    again = source("S2", *DEPLOY.blocks, title="Copy of the policy", score=0.9)
    found = quotes("When is the production deploy window?", DEPLOY, again)
    assert [label for label, _ in found] == ["S1"]


def test_a_name_counts_in_its_whole_document() -> None:
    named = source("S1", prose("Boarding stopped at Lysund."), document="a.md", score=0.9)
    other = source("S2", prose("Both gates refused every ticket."), document="a.md", score=0.9)
    strange = source("S3", prose("Both gates refused every ticket."), document="b.md", score=0.9)
    question = "Why were tickets refused by both gates at Lysund?"
    assert [label for label, _ in quotes(question, named, other)] == ["S2"]
    assert quotes(question, named, strange) == []


def test_the_document_that_bears_the_name_is_quoted_and_not_those_that_mention_it() -> None:
    meaning = prose("The filesystem is predicted to run out of space within four hours.")
    own = source("S1", meaning, title="Disk Filling Up", headings=("Meaning",), score=0.89)
    others = [
        source(f"S{at}", prose("This alert means nearly what DiskFillingUp means."), title=title)
        for at, title in enumerate(("DiskAlmostFull", "InodesFillingUp", "Writing runbooks"), 2)
    ]
    found = extract("What does DiskFillingUp mean?", [*others, own], Scores.COSINE, CALIBRATION)
    assert [piece.text for piece in found] == [meaning.text]


def test_a_source_in_another_language_is_quoted_only_where_it_stands_out() -> None:
    question = "At what wind speed are the sailings suspended?"
    storm = source("S1", *FERRY.blocks, title=FERRY.title, score=0.88)
    other = source("S2", *DEPLOY.blocks, title=DEPLOY.title, score=0.85)
    assert [label for label, _ in quotes(question, storm, other)] == ["S1", "S1"]
    near = source("S2", *DEPLOY.blocks, title=DEPLOY.title, score=0.87)
    assert quotes(question, storm, near) == []
    assert quotes(question, storm, other, scores=Scores.OTHER) == []


def test_scores_of_another_space_do_not_count() -> None:
    question = "When is the production deploy window?"
    assert quotes(question, scores=Scores.OTHER) == quotes(question)


PROSE = ["deploy", "window", "the", "is", "Monday", "09:30", "never", "Fähre", "🚢", "船。"]
SIGNS = ["[S1]", "|", "---", "e.g.", "no.", "1.", "-", "\n", "\n\n", "...", "Really?"]
WORDS = st.sampled_from([*PROSE, *SIGNS])
TEXTS = st.lists(WORDS, min_size=1, max_size=30).map(" ".join)
BLOCKS = st.builds(Block, st.sampled_from(Kind), TEXTS, st.just(""))


@given(TEXTS, st.lists(st.lists(BLOCKS, min_size=1, max_size=3), min_size=1, max_size=3))
def test_every_quotation_is_verbatim_in_the_source_it_cites(
    question: str, blocks: list[list[Block]]
) -> None:
    sources = [source(f"S{at}", *given) for at, given in enumerate(blocks, start=1)]
    loose = Calibration(score_low=0.8, score_high=0.9, least_support=0.05)
    found = extract(question, sources, Scores.COSINE, loose)
    assert len(found) <= MOST_QUOTES
    for piece in found:
        assert piece.text
        assert piece.text in piece.source.text
        assert piece.text == piece.text.strip()
