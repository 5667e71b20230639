"""An answer on the terminal: the text, its sources, what came of it in plain words, the time."""

from cli.gateway_service import Answer, Source, ask, queue, stream
from cli.live_text import live_text
from cli.output import Output, titled


async def answered(url: str, token: str, question: str, output: Output) -> Answer:
    """Ask and show what comes of it; on a terminal the text appears as it is released."""
    # Rich takes a pipe for a terminal where FORCE_COLOR is set.
    if output.as_json or not output.people.file.isatty():
        answer = await ask(url, token, question)
        show(output, answer)
        return answer
    with live_text(output) as text:
        answer = await stream(url, token, question, text)
        text.settle(answer.text)
    show_rest(output, answer)
    return answer


async def queued(url: str, token: str, question: str, output: Output) -> Answer:
    """Queue it and show how its answer is fetched."""
    answer = await queue(url, token, question)
    job_id = answer.raw["job_id"]
    output.line(f"{answer.message}: its answer will be shown by sluice job {job_id}", style="bold")
    return answer


def show(output: Output, answer: Answer) -> None:
    if answer.text:
        output.line(answer.text)
        output.line()
    show_rest(output, answer)


def show_rest(output: Output, answer: Answer) -> None:
    """What is shown below the text."""
    output.line(f"{answer.mode} {answer.reason}: {answer.message}", style="bold")
    if answer.acceptance == "REVIEW_REQUIRED":
        output.line("A person has to look at this answer before it is used.", style="yellow")
    for source in shown_sources(answer):
        output.line(f"[{source.label}] {described(source)}", style="cyan")
    spent = ", ".join(f"{name} {spent:,.0f} ms" for name, spent in answer.timings.items())
    output.line(f"time: {spent}", style="dim")


def shown_sources(answer: Answer) -> list[Source]:
    """The cited sources; all of them when there is no text to cite them."""
    return [one for one in answer.sources if one.label in answer.cited or not answer.text]


def described(source: Source) -> str:
    version = f", version {source.version}" if source.version else ""
    where = " / ".join(source.heading_path)
    link = f" {source.uri}" if source.uri else ""
    name = titled(source.document_id, where or source.title)
    return f"{name}{version} (score {source.score:.3f}){link}"
