import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus import bm25
from corpus.bm25 import SparseVector, document_vector, passage_vector, question_vector
from corpus.points import StoredPassage


def shared(question: str, document: str) -> float:
    """What of a document the question meets: their product, with every term equally rare."""
    stored = document_vector(document)
    weights = dict(zip(stored.indices, stored.values, strict=True))
    asked = question_vector(question)
    pairs = zip(asked.indices, asked.values, strict=True)
    return sum(weights.get(number, 0.0) * weight for number, weight in pairs)


def best(question: str, documents: Sequence[str]) -> str:
    return max(documents, key=lambda document: shared(question, document))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("DEPLOYMENTS", "deploying"),
        ("Relatório", "relatorio"),
        ("Straße", "STRASSE"),
        ("İstanbul", "istanbul"),
        ("\uff11\uff12\uff13", "123"),
        ("e\u0301cole", "\u00e9cole"),
        ("восстановление", "Восстановления"),
        ("مُحَمَّد", "محمد"),
        ("κατάσταση", "καταστασης"),
    ],
)
def test_forms_of_one_word_meet(one: str, other: str) -> None:
    assert shared(one, other) > 0


@pytest.mark.parametrize(
    ("one", "other"),
    [("100200300", "100200301"), ("x1y2z3a4", "x1y2z3a5"), ("カ", "ガ"), ("", "a"), ("!", "!")],
)
def test_what_differs_in_a_digit_or_a_sound_does_not_meet(one: str, other: str) -> None:
    assert shared(one, other) == 0


def test_compounds_of_one_beginning_differ_in_the_whole_word() -> None:
    documents = ["Fahrkartenautomaten werden gewartet", "Fahrkartenkontrollen werden gewartet"]
    assert best("Fahrkartenkontrollen", documents) == documents[1]
    assert best("Fahrkartenautomaten", documents) == documents[0]


@pytest.mark.parametrize(
    ("question", "documents", "expected"),
    [
        ("如何恢复数据库", ["网络设备需要重启", "数据库的恢复步骤", "值班手册"], 1),
        ("サーバーの再起動", ["障害の連絡先", "証明書の更新", "サーバーを再起動する手順"], 2),
        ("서버 재시작", ["서버를 재시작하는 방법", "인증서 갱신", "당직 안내"], 0),
        ("รีสตาร์ทเซิร์ฟเวอร์", ["คู่มือเวร", "วิธีรีสตาร์ทเซิร์ฟเวอร์", "ต่ออายุใบรับรอง"], 1),
        ("盐", ["糖和油", "食盐不足"], 1),
        ("Qdrant备份", ["Redis备份", "Qdrant的备份"], 1),
    ],
)
def test_languages_without_spaces_are_found(
    question: str, documents: list[str], expected: int
) -> None:
    assert best(question, documents) == documents[expected]


def test_a_weight_is_bm25s_saturated_by_repetition_and_lowered_by_length() -> None:
    assert document_vector("disk").values == pytest.approx([2.2 / (1 + 1.2 * (0.25 + 0.75 / 128))])
    once, often = document_vector("disk"), document_vector("disk " * 100)
    assert once.values[0] < often.values[0] < bm25.K1 + 1
    assert shared("disk", "disk " + "other words here " * 50) < shared("disk", "disk full")


def test_a_question_counts_a_term_once() -> None:
    assert question_vector("disk disk DISK") == question_vector("disk")
    assert question_vector("disk").values == (1.0,)


def test_how_a_question_is_put_is_not_looked_for() -> None:
    assert question_vector("What is the disk of which I was told?") == question_vector("disk told")
    assert question_vector("Até quando a lista é válida?") == question_vector("lista válida")
    assert question_vector("To be or not to be").values


def test_a_passage_is_found_by_its_title_its_headings_and_its_text(
    passage: Callable[..., StoredPassage],
) -> None:
    stored = passage_vector(passage(title="Alpha", heading_path=("Alpha", "Beta")))
    terms = set(stored.indices)
    for word in ("alpha", "beta", "disk", "x"):
        assert set(question_vector(word).indices) <= terms
    assert stored == document_vector("Alpha\nBeta\n" + passage().text)


def test_terms_have_the_same_numbers_on_every_machine() -> None:
    known = SparseVector((868066701, 4203200241), (1.0, 1.0))
    assert question_vector("Disk full") == known


@given(st.text())
def test_any_text_has_a_vector_that_an_index_takes(text: str) -> None:
    for vector in (document_vector(text), question_vector(text)):
        assert list(vector.indices) == sorted(set(vector.indices))
        assert all(0 <= number < 2**32 for number in vector.indices)
        assert all(math.isfinite(weight) and weight > 0 for weight in vector.values)
    # Whatever is left to look for in a text is found in it.
    assert set(question_vector(text).indices) <= set(document_vector(text).indices)
    assert bool(question_vector(text).indices) == bool(document_vector(text).indices)
