"""How these tests ask a model."""

from collections.abc import Callable

from capacity import Workload
from providers.chat import ChatClient, ChatMessage, Completion
from providers.endpoint import ChatOptions, Endpoint
from tests.scripted_provider.pool import SLOW

INPUT, OUTPUT = 100, 50
ESTIMATE = INPUT + OUTPUT
TEXT = "Fähren legen um 9 ab. \u2028Next\u0085line 🚢 [S1]"
MESSAGES = (ChatMessage("system", "Answer from the evidence."), ChatMessage("user", "When?"))

# A client at the scripted provider, of an endpoint with these changes or with this key.
Make = Callable[..., ChatClient]


def endpoint(base_url: str) -> Endpoint:
    return Endpoint(
        id="primary",
        base_url=base_url,
        model="model-a",
        pool="answers",
        limits=SLOW,
        options=ChatOptions(output_tokens=OUTPUT, temperature=0),
        attempt_seconds=5,
        key="key",
    )


async def ask(client: ChatClient, counted: int = INPUT, **more: object) -> Completion:
    return await client.complete(
        MESSAGES,
        input_tokens=counted,
        workload=Workload.INTERACTIVE,
        **more,  # type: ignore[arg-type] # only ever a schema
    )
