"""`sluice demo`: the examples go in, three questions are asked, each outcome is checked."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from chassis.errors import InvalidInput
from chassis.identity import AccessLevel
from cli import exits, ingest
from cli.answer import show
from cli.gateway_service import Answer, ask
from cli.identity import Identity
from cli.output import Output
from cli.sync import Plan
from local.ports import LOOPBACK
from local.run import Run
from local.state import RunningSuite

EXAMPLES = Path(__file__).parents[1] / "examples"
CONTENT = frozenset({"GENERATED", "EXTRACTIVE"})


@dataclass(frozen=True, slots=True)
class Gold:
    """A question with what must and must not come of it."""

    question: str
    relevant: frozenset[str]
    hidden: frozenset[str]
    secrets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Round:
    """One question as one person asks it. `answered` is what has to come of it."""

    title: str
    gold: Gold
    level: AccessLevel
    answered: bool


def rounds(examples: Path) -> list[Round]:
    """The demonstration's questions. Raises InvalidInput when the examples are not there."""
    try:
        gold = yaml.safe_load((examples / "gold.yaml").read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"the examples are not at {examples}", field="examples") from error
    questions = {one["id"]: _gold(one) for one in gold["questions"]}
    covered, outside, restricted = (
        questions[gold["demo"][name]] for name in ("covered", "out_of_scope", "restricted")
    )
    team, named = AccessLevel.TEAM, AccessLevel.RESTRICTED
    return [
        Round("A question that the documents answer", covered, team, answered=True),
        Round("A question that they do not answer", outside, team, answered=False),
        Round("A restricted question, asked at level team", restricted, team, answered=False),
        Round("The same, asked at level restricted", _opened(restricted), named, answered=True),
    ]


async def run(suite: Run | RunningSuite, identity: Identity, output: Output) -> int:
    """Ingest and ask, in a suite that runs or is started for it. Exit code 1 on a wrong outcome."""
    async with contextlib.AsyncExitStack() as stack:
        if isinstance(suite, Run):
            await stack.enter_async_context(suite)
        target = f"{LOOPBACK}:{suite.ports['ingest']}"
        plan = Plan("corpus", retire=True)
        corpus = EXAMPLES / "corpus"
        done = await ingest.ingested(corpus, plan, target, identity.for_ingest, output)
        results = [await _play(one, suite.url, identity, output) for one in rounds(EXAMPLES)]
    output.document({"rounds": results})
    wrong = [result for result in results if result["problem"]]
    if wrong or done.code:
        return exits.INCOMPLETE
    output.line()
    output.line("Every outcome is as it should be.", style="bold green")
    return exits.OK


async def _play(one: Round, url: str, identity: Identity, output: Output) -> Mapping[str, Any]:
    asker = replace(identity, level=one.level)
    answer = await ask(url, asker.for_gateway(), one.gold.question)
    output.line()
    output.line(f"{one.title}: {one.gold.question}", style="bold underline")
    show(output, answer)
    problem = fault(one, answer)
    if problem:
        output.line(f"WRONG: {problem}", style="bold red")
    return {"title": one.title, "problem": problem, "answer": answer.raw}


def fault(one: Round, answer: Answer) -> str:
    """What is wrong with an answer; empty when it is as it has to be."""
    seen = {source.document_id for source in answer.sources}
    words = " ".join([answer.text, *(source.included_text for source in answer.sources)])
    if seen & one.gold.hidden or any(secret in words for secret in one.gold.secrets):
        return "it shows what this person may not read"
    if not one.answered:
        return "" if answer.mode == "ABSTAINED" else f"{answer.mode} instead of an abstention"
    if answer.mode not in CONTENT or not answer.cited:
        return f"{answer.mode} instead of a cited answer"
    cited = {source.document_id for source in answer.sources if source.label in answer.cited}
    return (
        "" if cited & one.gold.relevant else "it cites none of the documents that hold the answer"
    )


def _gold(fields: Mapping[str, Any]) -> Gold:
    return Gold(
        question=fields["question"],
        relevant=frozenset(one["document"] for one in fields.get("relevant", ())),
        hidden=frozenset(fields.get("restricted", ())),
        secrets=tuple(fields.get("secret", ())),
    )


def _opened(gold: Gold) -> Gold:
    """The question for somebody who may read what is hidden from others."""
    return replace(gold, relevant=gold.hidden, hidden=frozenset(), secrets=())
