"""Why a suite does not run. The messages are for the person at the terminal.

LocalFailure
├── Refused      nothing goes on: a setting, a port or another suite is in the way
├── NotReady     a process ended or stayed unready while the suite started
└── GaveUp       a process kept dying
"""


class LocalFailure(Exception):
    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Refused(LocalFailure):
    pass


class NotReady(LocalFailure):
    pass


class GaveUp(LocalFailure):
    pass
