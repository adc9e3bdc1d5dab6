"""Plays recordings back in place of models and tools.

    with Replay("4df877dec7f4", "--fail-unused") as replay:
        label = replay.respond("Which label fits ticket 4711: bug, question or billing?")

    with Replay.of_run("3941d389b337") as run:
        output = run.call("tracker.label", {"ticket_id": "4711", "label": "bug"})

As a program, it prints the response to each prompt:

    python3 runvault_replay.py HASH PROMPT...

It needs Python 3.9 and nothing but its standard library. docs/replay.md describes the protocol.
"""

from __future__ import annotations

import json
import subprocess
import sys
from types import TracebackType
from typing import Any, Dict, List, Optional, Type

__all__ = ["Ended", "Miss", "RecordedError", "Replay", "ReplayError"]


class ReplayError(Exception):
    """Something other than a recorded response."""


class Miss(ReplayError):
    """There is no recording of what was asked; `code` says why."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class RecordedError(ReplayError):
    """The call failed when it was recorded; `output` is what was recorded of that."""

    def __init__(self, message: str, output: Any) -> None:
        super().__init__(message)
        self.output = output


class Ended(ReplayError):
    """The process ended with a status other than 0.

    It is 1 if there is no such recording, or if `--fail-unused` was given and a recording was not played.
    """

    def __init__(self, status: int) -> None:
        super().__init__(f"runvault ended with status {status}; it says why on standard error")
        self.status = status


class Replay:
    """A recording, played by a process of its own.

    Use it as a context manager: at the end of the `with` block the process ends, and `Ended` is raised if its status is
    not 0. An exception that leaves the block is not replaced by that one.
    """

    def __init__(self, recording: str, *options: str, program: str = "runvault") -> None:
        """Starts the process. Raises `OSError` if the program cannot be run."""
        self._process = subprocess.Popen(
            [program, "replay", recording, "--serve-stdio", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    @classmethod
    def of_run(cls, run: str, *options: str, program: str = "runvault") -> Replay:
        """The models and tools of a run."""
        return cls(run, *options, program=program)

    def __enter__(self) -> Replay:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        status = self.close()
        if status != 0 and error is None:
            raise Ended(status)

    def respond(self, prompt: str) -> str:
        """The recorded response to a prompt; the n-th time that it is asked, that of its n-th recording."""
        return str(self.ask({"prompt": prompt})["response"])

    def call(self, tool: str, arguments: Any) -> Any:
        """What the run recorded as the output of this call of a tool. Arguments are anything that JSON can say."""
        return self.ask({"tool": tool, "arguments": arguments})["output"]

    def ask(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """The answer to any request of the protocol. Raises `Miss` or `RecordedError` if it has no response."""
        sent, received = self._process.stdin, self._process.stdout
        assert sent is not None and received is not None, "both are pipes"
        try:
            sent.write(json.dumps(request) + "\n")
            sent.flush()
        except BrokenPipeError:
            pass  # The process has ended, and so do its answers.
        line = received.readline()
        if not line:
            raise Ended(self._process.wait())
        answer: Dict[str, Any] = json.loads(line)
        error = answer.get("error")
        if error is None:
            return answer
        if error["code"] == "recorded_error":
            raise RecordedError(error["message"], error["output"])
        raise Miss(error["message"], error["code"])

    def close(self) -> int:
        """Ends the process and gives its status, which is 0 if all is well."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.communicate()
        return self._process.wait()


def main(arguments: List[str]) -> None:
    """Prints the response to each prompt."""
    recording, *prompts = arguments
    with Replay(recording) as replay:
        for prompt in prompts:
            print(replay.respond(prompt))


if __name__ == "__main__":
    main(sys.argv[1:])
