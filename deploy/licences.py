"""Lists what the image's packages are licensed under: python deploy/licences.py writes the page.

A package says it as an SPDX expression, or by a classifier, or in a word of its own.
"""

import importlib.metadata
import re
from importlib.metadata import Distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements-runtime.txt"
PAGE = ROOT / "docs" / "licences.md"

# None of them asks for more than to be named, or for changes to its own files to be shown (MPL).
ADMITTED = {
    *("0BSD", "Apache-2.0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "CNRI-Python", "ISC"),
    *("MIT", "MIT-0", "MPL-2.0", "PSF-2.0", "Zlib"),
}
CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
WORDS = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "BSD-3-Clause, Apache-2.0, dependency licenses": "BSD-3-Clause AND Apache-2.0",
    "MIT License": "MIT",
}
# Read in the packages' own licence files where their metadata says nothing.
READ = {"taskiq-dependencies": "MIT"}

HEAD = """# Licences

What the packages of the image are licensed under, as `requirements-runtime.txt` names them for
Linux and Python 3.11. Written by `deploy/licences.py` from what the installed packages say of
themselves; a test fails when a package is missing here, says something else, or is under a licence
that asks for more than these do. BSD alone: the package does not say with how many clauses.

What a wheel carries inside is told in its own licence file: pypdfium2 brings PDFium (BSD-3-Clause,
Apache-2.0), numpy brings OpenBLAS (BSD-3-Clause) and the GCC runtime (GPL-3.0 with the runtime
exception, which asks nothing of who links it).

| package | licence |
|---|---|
"""


def installed() -> dict[str, Distribution]:
    """What of the image's lock is for this machine and Python."""
    names = re.findall(r"^([\w.-]+==[^\\\n]+)", LOCK.read_text(), re.MULTILINE)
    requirements = (Requirement(line) for line in names)
    return {
        canonicalize_name(one.name): importlib.metadata.distribution(one.name)
        for one in requirements
        if one.marker is None or one.marker.evaluate()
    }


def licence(name: str, package: Distribution) -> str:
    """SPDX expression. Raises KeyError for one that is told in a way nobody has read yet."""
    if name in READ:
        return READ[name]
    told = package.metadata.json
    if "license_expression" in told:
        return str(told["license_expression"])
    word = str(told.get("license", "")).strip().partition("\n")[0].strip()
    if word in ADMITTED or " OR " in word:
        return word
    if word in WORDS:
        return WORDS[word]
    prefix = "License :: OSI Approved :: "
    classifiers = package.metadata.get_all("Classifier") or []
    found = [CLASSIFIERS[one.removeprefix(prefix)] for one in classifiers if one.startswith(prefix)]
    if not found:
        raise KeyError(name)
    return " OR ".join(sorted(set(found)))


def is_admitted(expression: str) -> bool:
    """Whether each part of what is demanded together has a choice among ADMITTED."""
    parts = expression.replace("(", "").replace(")", "").split(" AND ")
    return all(any(one in ADMITTED for one in part.split(" OR ")) for part in parts)


def rows() -> list[str]:
    packages = sorted(installed().items())
    return [f"| {name} | {licence(name, package)} |" for name, package in packages]


if __name__ == "__main__":
    PAGE.write_text(HEAD + "\n".join(rows()) + "\n")
