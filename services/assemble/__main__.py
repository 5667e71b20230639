"""The assemble process. It depends on nothing."""

from functools import partial

from chassis.identity import Caller, Verifier, verifying_key
from chassis.serve import Service, run, serve
from chassis.settings import load
from corpus.tokens import vocabulary
from services.assemble.instructions import load as load_instructions
from services.assemble.remembered import remembered
from services.assemble.server import AssembleServicer, Standard
from services.assemble.settings import AssembleSettings
from sluice.assemble.v1.assemble_pb2_grpc import add_AssembleServiceServicer_to_server

TOKENIZER = "o200k_base"
LIMIT = 30  # seconds


def main() -> None:
    settings = load(AssembleSettings)
    run("assemble", settings, partial(process, settings))


async def process(settings: AssembleSettings) -> None:
    encoding = vocabulary(TOKENIZER)
    standard = Standard(
        budget=settings.budget,
        max_sources=settings.max_sources,
        instructions=load_instructions(),
        tokenizer=TOKENIZER,
        # Markers such as <|endoftext|> are ordinary text here, whoever wrote them.
        count=remembered(lambda text: len(encoding.encode_ordinary(text))),
    )
    verifier = Verifier(verifying_key(settings.internal_verify_key), "assemble")

    async def verify(token: str) -> Caller:
        return verifier.verify(token)

    add = partial(add_AssembleServiceServicer_to_server, AssembleServicer(standard))
    service = Service("sluice.assemble.v1.AssembleService", add)
    await serve(settings.port, settings, services=[service], verify=verify, limit=LIMIT)


if __name__ == "__main__":
    main()
