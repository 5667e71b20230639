"""The three stages that answer a question, as one process reaches them."""

from dataclasses import dataclass
from functools import partial
from typing import Self

from chassis.channels import connect
from chassis.health import Dependency
from chassis.identity import Minter
from gateway.flow import Flow
from gateway.line import Line
from gateway.pipeline_settings import PipelineSettings
from gateway.stages import INTERACTIVE, Assemble, Generate, Retrieve
from sluice.evidence.v1.evidence_pb2 import Passage, Source, Workload

RETRIEVE = "sluice.retrieve.v1.RetrieveService"
ASSEMBLE = "sluice.assemble.v1.AssembleService"
GENERATE = "sluice.generate.v1.GenerateService"


@dataclass(frozen=True, slots=True)
class Pipeline:
    """`retrieval` is what finds passages for the flow."""

    retrieve: Line
    assemble: Line
    generate: Line
    retrieval: Retrieve
    flow: Flow[Passage, Source]

    @classmethod
    def connect(
        cls,
        settings: PipelineSettings,
        minter: Minter,
        workload: Workload.ValueType = INTERACTIVE,
    ) -> Self:
        """Nothing is called yet. Providers are asked for the sake of `workload`."""
        to = partial(connect, certificates=settings.certificates)
        to_retrieve = to(settings.retrieve_target, service=RETRIEVE, idempotent=True)
        to_assemble = to(settings.assemble_target, service=ASSEMBLE, idempotent=True)
        to_generate = to(settings.generate_target, service=GENERATE, idempotent=False)
        retrieve = Line("retrieve", to_retrieve, minter, settings.retrieve_seconds)
        assemble = Line("assemble", to_assemble, minter, settings.assemble_seconds)
        generate = Line("generate", to_generate, minter, settings.generate_seconds)
        retrieval = Retrieve(retrieve, workload)
        flow = Flow(retrieval, Assemble(assemble), Generate(generate, workload))
        return cls(retrieve, assemble, generate, retrieval, flow)

    def parts(self) -> list[Dependency]:
        """Without a model passages are still worth showing."""
        return [
            self.retrieve.dependency(needed=True),
            self.assemble.dependency(needed=True),
            self.generate.dependency(needed=False),
        ]

    async def close(self) -> None:
        for line in (self.retrieve, self.assemble, self.generate):
            await line.channel.close()
