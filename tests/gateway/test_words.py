import pytest

from gateway.outcome import TABLE, Acceptance, Mode, Outcome, Reason
from gateway.words import plain_words


def outcomes() -> list[Outcome]:
    return [
        Outcome(
            mode,
            reason,
            Acceptance.ACCEPTED if acceptances else None,
            age=10_800 if mode is Mode.PREVIOUS else None,
            job_id="7" if mode is Mode.QUEUED else "",
        )
        for mode, (reasons, acceptances) in TABLE.items()
        for reason in reasons
    ]


def test_every_outcome_has_words_of_its_own() -> None:
    said = [plain_words(outcome, passages=False) for outcome in outcomes()]
    assert len(set(said)) == len(said) == 19
    assert all(word == word.strip() and "{" not in word for word in said)


@pytest.mark.parametrize(
    ("age", "said"),
    [
        (0, "0 s"),
        (119.9, "119 s"),
        (120, "2 min"),
        (7_199, "119 min"),
        (10_800, "3 h"),
        (172_799, "47 h"),
        (172_800, "2 days"),
    ],
)
def test_an_earlier_answer_tells_its_age(age: float, said: str) -> None:
    outcome = Outcome(Mode.PREVIOUS, Reason.CAPACITY, Acceptance.ACCEPTED, age=age)
    words = plain_words(outcome, passages=False)
    assert words == f"an earlier answer, {said} old: the model's allowance is used up"


def test_passages_in_an_answers_stead_are_named() -> None:
    outcome = Outcome(Mode.UNAVAILABLE, Reason.MODEL_UNAVAILABLE)
    assert plain_words(outcome, passages=True) == (
        "no answer: the model does not answer; these are the passages that were found"
    )


def test_nobody_is_told_that_an_answer_was_checked_which_a_person_has_to_look_at() -> None:
    for mode, age in ((Mode.GENERATED, None), (Mode.PREVIOUS, 60)):
        reason = Reason.NONE if mode is Mode.GENERATED else Reason.CAPACITY
        outcome = Outcome(mode, reason, Acceptance.REVIEW_REQUIRED, age=age)
        said = plain_words(outcome, passages=False)
        assert "a person has to check it first" in said
        assert "every citation checked" not in said
