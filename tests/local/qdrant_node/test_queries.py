# ruff: noqa: ANN401 -- values of any JSON type are what is tested
import math
import random
from typing import Any

import pytest
import qdrant_edge
from qdrant_client import AsyncQdrantClient, models

TEXTS = {
    1: "the service restarts and the service logs",
    2: "the service rotates certificates",
    3: "the service restarts after deploys",
    4: "the service writes logs",
}


def sparse(**weights: float) -> models.SparseVector:
    return models.SparseVector(
        indices=[int(key[1:]) for key in weights], values=list(weights.values())
    )


def bm25(vector: qdrant_edge.SparseVector) -> models.SparseVector:
    return models.SparseVector(indices=vector.indices, values=vector.values)


def where(key: str, value: Any) -> models.Filter:
    return models.Filter(
        must=[models.FieldCondition(key=key, match=models.MatchValue(value=value))]
    )


def near(x: float, y: float, limit: int = 10, **more: Any) -> models.Prefetch:
    return models.Prefetch(query=[x, y], using="dense", limit=limit, **more)


def found(response: models.QueryResponse) -> list[models.ExtendedPointId]:
    return [hit.id for hit in response.points]


@pytest.fixture
async def collection(client: AsyncQdrantClient, name: str) -> str:
    """Points 0 to 5 on a quarter circle, from (1, 0) to (0, 1); even ones are in group `even`."""
    await client.create_collection(
        name,
        vectors_config={"dense": models.VectorParams(size=2, distance=models.Distance.COSINE)},
        sparse_vectors_config={"sparse": models.SparseVectorParams()},
    )
    await client.upsert(
        name,
        [
            models.PointStruct(
                id=number,
                vector={
                    "dense": [math.cos(number * math.pi / 10), math.sin(number * math.pi / 10)],
                    "sparse": sparse(**{f"i{number}": 1.0, "i9": float(number + 1)}),
                },
                payload={"group": "odd" if number % 2 else "even", "number": number},
            )
            for number in range(6)
        ],
    )
    return name


async def test_dense_hits_and_scores_equal_brute_force(
    client: AsyncQdrantClient, name: str
) -> None:
    randomness = random.Random(7)
    vectors = [[randomness.gauss(0, 1) for _ in range(16)] for _ in range(300)]
    query = [randomness.gauss(0, 1) for _ in range(16)]
    await client.create_collection(
        name,
        vectors_config={"dense": models.VectorParams(size=16, distance=models.Distance.COSINE)},
    )
    await client.upsert(
        name,
        [
            models.PointStruct(id=number, vector={"dense": vector}, payload={"third": number % 3})
            for number, vector in enumerate(vectors)
        ],
    )

    response = await client.query_points(
        name,
        query,
        using="dense",
        query_filter=where("third", 1),
        limit=20,
        search_params=models.SearchParams(exact=True, hnsw_ef=128),
    )

    scores = {
        number: sum(a * b for a, b in zip(query, vector, strict=True))
        / (math.hypot(*query) * math.hypot(*vector))
        for number, vector in enumerate(vectors)
        if number % 3 == 1
    }
    expected = sorted(scores, key=lambda number: -scores[number])[:20]
    assert found(response) == expected
    assert [hit.score for hit in response.points] == pytest.approx(
        [scores[number] for number in expected], abs=1e-5
    )


async def test_a_query_returns_payload_and_vectors_only_where_asked(
    client: AsyncQdrantClient, collection: str
) -> None:
    bare = await client.query_points(
        collection, [1.0, 0.0], using="dense", limit=1, with_payload=False
    )
    whole = await client.query_points(
        collection,
        [1.0, 0.0],
        using="dense",
        limit=1,
        with_payload=["group"],
        with_vectors=["dense"],
    )

    assert not bare.points[0].payload
    assert bare.points[0].vector is None
    assert whole.points[0].payload == {"group": "even"}
    assert whole.points[0].vector == {"dense": [1, 0]}


async def test_limit_offset_and_threshold_cut_the_hits(
    client: AsyncQdrantClient, collection: str
) -> None:
    async def hits(**more: Any) -> list[models.ExtendedPointId]:
        return found(await client.query_points(collection, [1.0, 0.0], using="dense", **more))

    assert await hits() == [0, 1, 2, 3, 4, 5]
    assert await hits(limit=2, offset=3) == [3, 4]
    assert await hits(score_threshold=math.cos(0.25 * math.pi)) == [0, 1, 2]


async def test_sparse_hits_are_scored_by_the_dot_product(
    client: AsyncQdrantClient, collection: str
) -> None:
    response = await client.query_points(collection, sparse(i2=10, i9=1), using="sparse", limit=3)

    assert [(hit.id, hit.score) for hit in response.points] == [(2, 13), (5, 6), (4, 5)]


async def test_the_idf_modifier_lets_rare_terms_weigh_more(
    client: AsyncQdrantClient, name: str
) -> None:
    common_first = [sparse(i1=3), sparse(i1=2), sparse(i1=2), sparse(i1=1, i2=1)]
    for modifier, best in ((None, 0), (models.Modifier.IDF, 3)):
        collection = f"{name}-{modifier}"
        await client.create_collection(
            collection,
            sparse_vectors_config={"bm25": models.SparseVectorParams(modifier=modifier)},
        )
        await client.upsert(
            collection,
            [
                models.PointStruct(id=number, vector={"bm25": vector})
                for number, vector in enumerate(common_first)
            ],
        )

        response = await client.query_points(collection, sparse(i1=1, i2=1), using="bm25")

        assert found(response)[0] == best


async def test_a_term_is_as_rare_as_in_the_corpus_that_the_query_names(
    client: AsyncQdrantClient, name: str
) -> None:
    await client.create_collection(
        name,
        sparse_vectors_config={"bm25": models.SparseVectorParams(modifier=models.Modifier.IDF)},
    )
    await client.upsert(
        name,
        [
            models.PointStruct(id=number, vector={"bm25": sparse(i1=1)}, payload={"of": owner})
            for number, owner in enumerate(["mine", "theirs", "theirs", "theirs"])
        ]
        + [models.PointStruct(id=9, vector={"bm25": sparse(i2=1)}, payload={"of": "mine"})],
    )
    mine = models.Filter(
        must=[models.FieldCondition(key="of", match=models.MatchValue(value="mine"))]
    )
    scores = []
    for params in (None, models.SearchParams(idf=models.IdfCorpusParams(corpus=mine))):
        response = await client.query_points(
            name, sparse(i1=1), using="bm25", query_filter=mine, search_params=params
        )
        scores.append(response.points[0].score)

    # ln((n - m + 0.5) / (m + 0.5) + 1): in 4 of 5 points, and in 1 of 2.
    assert scores == pytest.approx([math.log(1.5 / 4.5 + 1), math.log(2)], rel=1e-5)


async def test_bm25_vectors_find_the_text_that_shares_the_rare_word(
    client: AsyncQdrantClient, name: str
) -> None:
    model = qdrant_edge.Bm25()
    await client.create_collection(
        name,
        sparse_vectors_config={"bm25": models.SparseVectorParams(modifier=models.Modifier.IDF)},
    )
    await client.upsert(
        name,
        [
            models.PointStruct(id=number, vector={"bm25": bm25(model.embed_document(text))})
            for number, text in TEXTS.items()
        ],
    )

    response = await client.query_points(
        name, bm25(model.embed_query("which service rotates the certificates?")), using="bm25"
    )

    assert found(response)[0] == 2
    assert response.points[0].score > 2 * response.points[1].score


async def test_a_query_by_id_leaves_that_point_out(
    client: AsyncQdrantClient, collection: str
) -> None:
    response = await client.query_points(
        collection, 2, using="dense", query_filter=where("group", "even")
    )

    assert found(response) in ([0, 4], [4, 0])


async def test_a_query_by_id_may_look_the_vector_up_elsewhere(
    client: AsyncQdrantClient, collection: str, name: str
) -> None:
    other = f"{name}-other"
    await client.create_collection(
        other, vectors_config={"pair": models.VectorParams(size=2, distance=models.Distance.DOT)}
    )
    await client.upsert(other, [models.PointStruct(id=5, vector={"pair": [0, 1]})])

    response = await client.query_points(
        collection,
        5,
        using="dense",
        limit=2,
        lookup_from=models.LookupLocation(collection=other, vector="pair"),
    )

    assert found(response) == [5, 4]


async def test_rrf_fuses_by_rank(client: AsyncQdrantClient, collection: str) -> None:
    arms = [near(1, 0, limit=2), models.Prefetch(query=sparse(i9=1), using="sparse", limit=2)]

    even = await client.query_points(
        collection, models.FusionQuery(fusion=models.Fusion.RRF), prefetch=[*arms, near(1, 0)]
    )
    weighted = await client.query_points(
        collection, models.RrfQuery(rrf=models.Rrf(k=60, weights=[1, 3])), prefetch=arms
    )

    assert even.points[0].id == 0
    assert even.points[0].score == pytest.approx(1 / 2 + 1 / 2)
    assert found(weighted)[:2] == [5, 4]


async def test_dbsf_fuses_by_normalised_scores(client: AsyncQdrantClient, collection: str) -> None:
    response = await client.query_points(
        collection,
        models.FusionQuery(fusion=models.Fusion.DBSF),
        prefetch=[near(0, 1), models.Prefetch(query=sparse(i9=1), using="sparse")],
    )

    assert found(response) == [5, 4, 3, 2, 1, 0]
    assert response.points[0].score > 1


async def test_the_outer_filter_and_the_inner_ones_all_hold(
    client: AsyncQdrantClient, collection: str
) -> None:
    fusion = models.FusionQuery(fusion=models.Fusion.RRF)
    inner = await client.query_points(
        collection, fusion, prefetch=near(0, 1, filter=where("group", "odd"))
    )
    outer = await client.query_points(
        collection, fusion, prefetch=near(0, 1, limit=1), query_filter=where("group", "even")
    )
    both = await client.query_points(
        collection,
        fusion,
        prefetch=models.Prefetch(
            prefetch=near(0, 1, filter=where("group", "odd")), query=fusion, limit=5
        ),
        query_filter=where("number", 3),
    )

    assert found(inner) == [5, 3, 1]
    assert found(outer) == [4]
    assert found(both) == [3]


async def test_a_prefetch_is_scored_again_by_the_outer_query(
    client: AsyncQdrantClient, collection: str
) -> None:
    response = await client.query_points(
        collection, [0.0, 1.0], using="dense", prefetch=near(1, 0, limit=3)
    )

    assert found(response) == [2, 1, 0]


async def test_mmr_prefers_what_differs_from_the_first_hit(
    client: AsyncQdrantClient, collection: str
) -> None:
    await client.upsert(
        collection, [models.PointStruct(id=100, vector={"dense": [1, 0.001]}, payload={})]
    )

    async def hits(diversity: float) -> models.QueryResponse:
        query = models.NearestQuery(
            nearest=[1, 0], mmr=models.Mmr(diversity=diversity, candidates_limit=7)
        )
        return await client.query_points(collection, query, using="dense", limit=2)

    assert found(await hits(0.0)) == [0, 100]
    diverse = await hits(0.9)
    assert found(diverse) == [0, 5]
    assert [hit.vector for hit in diverse.points] == [None, None]


async def test_points_come_ordered_by_a_field_or_at_random(
    client: AsyncQdrantClient, collection: str
) -> None:
    await client.create_payload_index(collection, "number", models.PayloadSchemaType.INTEGER)
    falling = models.OrderBy(key="number", direction=models.Direction.DESC)

    ordered = await client.query_points(collection, models.OrderByQuery(order_by=falling), limit=3)
    sampled = await client.query_points(
        collection, models.SampleQuery(sample=models.Sample.RANDOM), limit=6
    )

    assert found(ordered) == [5, 4, 3]
    assert set(found(sampled)) == {0, 1, 2, 3, 4, 5}


async def test_a_batch_answers_each_query_in_its_place(
    client: AsyncQdrantClient, collection: str
) -> None:
    responses = await client.query_batch_points(
        collection,
        [
            models.QueryRequest(query=[1, 0], using="dense", limit=2),
            models.QueryRequest(query=sparse(i9=1), using="sparse", limit=1, with_payload=True),
            models.QueryRequest(query=[1, 0], using="dense", filter=where("group", "none")),
        ],
    )

    assert [found(response) for response in responses] == [[0, 1], [5], []]
    assert responses[1].points[0].payload == {"group": "odd", "number": 5}
