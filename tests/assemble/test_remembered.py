from services.assemble.remembered import CHARACTERS, TEXTS, remembered


def test_a_text_is_judged_once_while_it_is_among_the_last_and_a_long_one_every_time() -> None:
    asked: list[str] = []

    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    judged = remembered(length)
    short, long = "x" * CHARACTERS, "x" * (CHARACTERS + 1)
    assert [judged(short), judged(short), judged(long), judged(long)] == [
        CHARACTERS,
        CHARACTERS,
        CHARACTERS + 1,
        CHARACTERS + 1,
    ]
    assert asked == [short, long, long]
    for number in range(TEXTS):
        judged(str(number))
    assert judged(short) == CHARACTERS
    assert asked.count(short) == 2
