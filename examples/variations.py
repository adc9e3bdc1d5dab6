#!/usr/bin/env python3
"""Write variations of run packs: the same agents on other days, with other answers, durations and failures.

    python3 examples/variations.py varied examples/run.rpk     # 2,000 runs of three months in the directory varied/
    runvault add varied

The run packs that are given must be in normal form, as ReplayKit writes them: the script computes their hashes first and
stops if they differ. The same arguments give the same files. It needs only the standard library.
"""

import argparse
import copy
import datetime
import hashlib
import json
import pathlib
import random

# Members that step hashes do not cover, at any depth.
VOLATILE = {
    "duration_ms", "latency_ms", "wall_time_ms", "request_id", "trace_id",
    "span_id", "captured_at", "captured_ns", "thread_id", "pid",
}
TIME = "%Y-%m-%dT%H:%M:%S.%fZ"
REWORDED = ["", " Nothing else was asked.", " Please check this.", " I am not sure about it."]
ERRORS = [
    ("TimeoutError", "no answer within 30 seconds"),
    ("RateLimitError", "429 Too Many Requests"),
    ("ConnectionError", "connection reset by peer"),
]


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(value):
    return "sha256:" + hashlib.sha256(canonical(value).encode()).hexdigest()


def without_volatile(value):
    if isinstance(value, dict):
        return {name: without_volatile(of) for name, of in value.items() if name.lower() not in VOLATILE}
    if isinstance(value, list):
        return [without_volatile(of) for of in value]
    return value


def step_hash(step):
    return digest(without_volatile({name: step[name] for name in ("type", "input", "output", "metadata")}))


def checksum(pack):
    return digest({name: pack[name] for name in ("version", "metadata", "payload")})


def read(path):
    pack = json.loads(path.read_text(encoding="utf-8"))
    steps = pack["payload"]["run"]["steps"]
    if pack["checksum"] != checksum(pack) or any(step["hash"] != step_hash(step) for step in steps):
        raise SystemExit(f"{path}: its hashes are not those of its text; only run packs in normal form can be varied")
    return pack


def replaced(value, old, new):
    """Return the value with the texts that are `old` replaced by `new`."""
    if isinstance(value, dict):
        return {name: replaced(of, old, new) for name, of in value.items()}
    if isinstance(value, list):
        return [replaced(of, old, new) for of in value]
    return new if value == old else value


def texts(value, names):
    """Return the texts of members with these names, at any depth."""
    if isinstance(value, dict):
        own = [of for name, of in value.items() if name in names and isinstance(of, str)]
        return own + [text for of in value.values() for text in texts(of, names)]
    if isinstance(value, list):
        return [text for of in value for text in texts(of, names)]
    return []


def vary(pack, number, day, choose):
    pack = copy.deepcopy(pack)
    run = pack["payload"]["run"]
    start = day + datetime.timedelta(seconds=choose.randrange(6 * 3600, 22 * 3600))
    run_id = f"{run['id']}-{number:04}"
    pack = replaced(pack, run["id"], run_id)
    run = pack["payload"]["run"]
    for model in sorted(set(texts(run["steps"], {"model"}))):
        # A new release in every month.
        run["steps"] = replaced(run["steps"], model, f"{model}-{day:%Y-%m}")
    now = start
    fails = choose.random() < (0.5 if day.weekday() == 1 and day.day > 14 else 0.04)
    failed_at = choose.randrange(len(run["steps"])) if fails else None
    kept = []
    for index, step in enumerate(run["steps"]):
        milliseconds = choose.randrange(20, 4000 if step["type"].startswith("model") else 900)
        step["timestamp"] = now.strftime(TIME)
        step["metadata"]["duration_ms"] = milliseconds
        now += datetime.timedelta(milliseconds=milliseconds)
        if step["type"] == "model.response":
            reword(step, choose.choice(REWORDED))
            usage = {"input_tokens": choose.randrange(80, 900), "output_tokens": choose.randrange(5, 300)}
            step["output"].setdefault("usage", usage)
        kept.append(step)
        if index == failed_at:
            kept.append(error(len(kept) + 1, choose.choice(ERRORS), now))
            break
    for step in kept:
        step["hash"] = step_hash(step)
    run["steps"] = kept
    run["timestamp"] = pack["metadata"]["created_at"] = start.strftime(TIME)
    # What it came from is not varied with it.
    pack["metadata"].pop("model_io_hash", None)
    pack.pop("signature", None)
    pack["checksum"] = checksum(pack)
    return run_id, pack


def reword(step, suffix):
    for text in set(texts(step["output"], {"content", "text", "output_text", "assembled_text"})):
        if " " in text:
            step["output"] = replaced(step["output"], text, text + suffix)


def error(number, kind_and_message, now):
    kind, message = kind_and_message
    return {
        "id": f"step-{number:06}",
        "type": "error.event",
        "input": {},
        "output": {"error": {"type": kind, "message": message}},
        "metadata": {},
        "timestamp": now.strftime(TIME),
    }


def main():
    arguments = argparse.ArgumentParser(description="Write variations of run packs.")
    arguments.add_argument("directory", type=pathlib.Path, help="the directory to write to; it is created")
    arguments.add_argument("packs", nargs="+", type=pathlib.Path, help="run packs to vary")
    arguments.add_argument("--count", type=int, default=2000, help="the number of variations (default: 2000)")
    arguments.add_argument("--days", type=int, default=92, help="the number of days they are of (default: 92)")
    arguments.add_argument("--last", default="2026-11-20", help="the last day (default: 2026-11-20)")
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    last = datetime.datetime.strptime(given.last, "%Y-%m-%d")
    choose = random.Random(given.seed)
    packs = [read(path) for path in given.packs]
    given.directory.mkdir(parents=True, exist_ok=True)
    for number in range(given.count):
        day = last - datetime.timedelta(days=given.days - 1 - number * given.days // given.count)
        run_id, pack = vary(packs[number % len(packs)], number, day, choose)
        (given.directory / f"{run_id}.rpk").write_text(json.dumps(pack, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
