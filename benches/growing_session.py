"""Measures what snapshots of one growing agent session take: runvault, and restic if it is installed.

Usage: growing_session.py PROGRAM DIRECTORY [MEGABYTES] [SNAPSHOTS]

The session is a transcript of Claude Code whose tools return texts and images, some of them several times, and which repeats
its history now and then. Each snapshot has the lines that were written so far.
"""

import base64
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path


def session(size: int) -> bytes:
    chance = random.Random(4)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(chance.choices(letters, k=chance.randint(3, 10))) for _ in range(20_000)]
    images = [base64.b64encode(chance.randbytes(150_000)).decode() for _ in range(40)]
    lines: list[bytes] = []
    outputs: list[str] = []
    written = 0

    def record(kind: str, message: dict) -> None:
        nonlocal written
        number = len(lines)
        value = {"parentUuid": f"r{number - 1}" if number else None, "sessionId": "grows", "version": "2.1.0", "type": kind,
                 "message": message, "uuid": f"r{number}"}
        lines.append(json.dumps(value).encode() + b"\n")
        written += len(lines[-1])

    while written < size:
        text = " ".join(chance.choices(words, k=chance.choice([200, 800, 3_000])))
        outputs.append(text)
        call = f"call-{len(lines)}"
        record("user", {"role": "user", "content": " ".join(chance.choices(words, k=60))})
        record("assistant", {"id": f"answer-{len(lines)}", "role": "assistant", "model": "m",
                             "content": [{"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": "/a"}}]})
        content = [{"type": "text", "text": chance.choice(outputs[-200:]) if chance.random() < 0.3 else text}]
        if chance.random() < 0.25:
            source = {"type": "base64", "media_type": "image/png", "data": chance.choice(images)}
            content.append({"type": "image", "source": source})
        result = {"type": "tool_result", "tool_use_id": call, "content": content}
        record("user", {"role": "user", "content": [result]})
        if len(outputs) % 150 == 0:
            record("user", {"role": "user", "content": " ".join(outputs[-60:])})
    return b"".join(lines)


def measured(name: str, directory: Path, document: bytes, snapshots: int, add: list[str], stored: Path) -> None:
    file = directory / "session.jsonl"
    began = time.monotonic()
    for number in range(1, snapshots + 1):
        file.write_bytes(document[: document.rindex(b"\n", 0, len(document) * number // snapshots) + 1])
        subprocess.run([*add, str(file)], check=True, stdout=subprocess.DEVNULL)
    files = [stored] if stored.is_file() else [path for path in stored.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    print(f"{name}: {size / 1e6:.1f} MB, {time.monotonic() - began:.0f} s")


def main() -> None:
    program, directory = sys.argv[1], Path(sys.argv[2])
    megabytes, snapshots = (int(number) for number in (sys.argv[3:] + ["100", "200"][len(sys.argv) - 3 :]))
    directory.mkdir(parents=True)
    document = session(megabytes * 1_000_000)
    vault = directory / "v.vault"
    measured("runvault", directory, document, snapshots, [program, "add", "-q", "--create", "--vault", str(vault)], vault)
    if shutil.which("restic"):
        repository = directory / "restic"
        os.environ.update(RESTIC_PASSWORD="bench", RESTIC_REPOSITORY=str(repository))
        os.environ["RESTIC_CACHE_DIR"] = str(directory / "cache")
        subprocess.run(["restic", "init", "-q"], check=True)
        measured("restic", directory, document, snapshots, ["restic", "backup", "-q"], repository)


if __name__ == "__main__":
    main()
