"""Replays a recorded session in place of a model.

    python3 client.py HASH PROMPT...    prints the response to each prompt

The protocol is described in docs/replay.md.
"""

import json
import subprocess
import sys


class Miss(Exception):
    """There is no recorded response; code says why."""

    def __init__(self, error):
        super().__init__(error["message"])
        self.code = error["code"]


class Replay:
    """A recording. Use it as a context manager, so that the process ends with it."""

    def __init__(self, recording, *options, program="runvault"):
        command = [program, "replay", recording, "--serve-stdio", *options]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def respond(self, prompt):
        """The recorded response to prompt."""
        try:
            print(json.dumps({"prompt": prompt}), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass  # the end of its answers tells that it has ended
        line = self.process.stdout.readline()
        if not line:
            raise EOFError(f"runvault ended with status {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise Miss(answer["error"])
        return answer["response"]

    def close(self):
        """Ends the process. Its status is 1 if --fail-unused was given and a recording was never asked for."""
        self.process.communicate()
        return self.process.returncode


if __name__ == "__main__":
    with Replay(sys.argv[1]) as replay:
        for text in sys.argv[2:]:
            print(replay.respond(text))
