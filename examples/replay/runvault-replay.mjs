// Plays recordings back in place of models and tools.
//
//     const replay = new Replay("4df877dec7f4", ["--fail-unused"]);
//     const label = await replay.respond("Which label fits ticket 4711: bug, question or billing?");
//     await replay.finish();
//
// As a program, it prints the response to each prompt:
//
//     node runvault-replay.mjs HASH PROMPT...
//
// It needs Node.js 20 and nothing else. runvault-replay.d.mts has its types, docs/replay.md describes the protocol.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Something other than a recorded response. */
export class ReplayError extends Error {
  constructor(message) {
    super(message);
    this.name = new.target.name;
  }
}

/** There is no recording of what was asked; the code says why. */
export class Miss extends ReplayError {
  constructor(message, code) {
    super(message);
    this.code = code;
  }
}

/** The call failed when it was recorded; the output is what was recorded of that. */
export class RecordedError extends ReplayError {
  constructor(message, output) {
    super(message);
    this.output = output;
  }
}

/** The process ended with a status other than 0. */
export class Ended extends ReplayError {
  constructor(status) {
    super(`runvault ended with status ${status}; it says why on standard error`);
    this.status = status;
  }
}

/** A recording, played by a process of its own. It ends with finish() or close(). */
export class Replay {
  #process;
  #started;
  #ended;
  #lines;

  constructor(recording, options = [], program = "runvault") {
    this.#process = spawn(program, ["replay", recording, "--serve-stdio", ...options], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    // That the program cannot be run is an error of whatever is asked, not of the whole process.
    this.#started = once(this.#process, "spawn");
    this.#started.catch(() => {});
    this.#process.on("error", () => {});
    this.#ended = new Promise((resolve) => this.#process.once("close", resolve));
    // If the process has ended, the end of its answers tells that.
    this.#process.stdin.on("error", () => {});
    this.#lines = lines(this.#process.stdout);
  }

  /** The models and tools of a run. */
  static ofRun(run, options = [], program = "runvault") {
    return new Replay(run, options, program);
  }

  /** The recorded response to a prompt; the n-th time that it is asked, that of its n-th recording. */
  async respond(prompt) {
    return (await this.ask({ prompt })).response;
  }

  /** What the run recorded as the output of this call of a tool. */
  async call(tool, args) {
    return (await this.ask({ tool, arguments: args })).output;
  }

  /** The answer to any request of the protocol. */
  async ask(request) {
    await this.#started;
    this.#process.stdin.write(JSON.stringify(request) + "\n");
    const { value: line, done } = await this.#lines.next();
    if (done) throw new Ended(await this.#ended);
    const answer = JSON.parse(line);
    const { error } = answer;
    if (!error) return answer;
    if (error.code === "recorded_error") throw new RecordedError(error.message, error.output);
    throw new Miss(error.message, error.code);
  }

  /** Ends the process and gives its status, which is 0 if all is well. */
  async close() {
    await this.#started;
    this.#process.stdin.end();
    // It ends when all of its answers are read.
    while (!(await this.#lines.next()).done);
    return await this.#ended;
  }

  /** Ends the process, and fails if its status is not 0. */
  async finish() {
    const status = await this.close();
    if (status !== 0) throw new Ended(status);
  }
}

// For "await using", where there is that.
if (Symbol.asyncDispose) {
  Replay.prototype[Symbol.asyncDispose] = Replay.prototype.finish;
}

/** The lines of a stream. Those of node:readline also end at U+2028. */
async function* lines(stream) {
  stream.setEncoding("utf8");
  let parts = [];
  for await (const chunk of stream) {
    const [first, ...rest] = chunk.split("\n");
    parts.push(first);
    for (const part of rest) {
      yield parts.join("");
      parts = [part];
    }
  }
}

/** Prints the response to each prompt. */
async function main([recording, ...prompts]) {
  const replay = new Replay(recording);
  for (const prompt of prompts) console.log(await replay.respond(prompt));
  await replay.finish();
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await main(process.argv.slice(2));
}
