"""Adapters that do what a converter must not: what the first byte of their input says."""

import os
import sys
import tempfile
import threading

from services.ingest.adapters.reply import Converted, answer


def convert(data: bytes) -> Converted:
    match data[:1]:
        case b"l":
            return Converted(str(len(data)))
        case b"h":
            threading.Event().wait()
        case b"m":
            return Converted("x" * len(bytearray(2**40)))
        case b"d":
            os.abort()
        case b"p":
            sys.stdout.write("a converter's remark")
            sys.stdout.flush()
        case b"e":
            return Converted(",".join(sorted(os.environ)))
        case b"w":
            with tempfile.TemporaryFile() as file:
                file.write(data)
        case _:
            raise ValueError(data)
    return Converted("read")


if __name__ == "__main__":
    answer(convert)
