import type { ChildProcess } from "node:child_process";

import { start } from "./command.js";
import type { ProgramOptions } from "./options.js";

/** Any value of JSON. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A request of the protocol of `runvault replay --serve-stdio`. */
export interface ReplayQuestion {
  prompt?: string;
  prompt_hash?: string;
  occurrence?: number;
  responder?: "model" | "tool";
  tool?: string;
  arguments?: Json;
  arguments_hash?: string;
}

/** A recorded response. */
export interface ReplayResponse {
  id: null;
  response: string;
  core_hash: string;
  index: number;
  occurrence?: number;
  occurrences?: number;
  responder?: "model" | "tool";
  tool?: string | null;
  output?: Json;
}

interface ErrorLine {
  error: { code: string; message: string; output?: Json };
}

/** A request that has no recorded response. */
export class ReplayError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** The request was not recorded; the code says why it has no response. */
export class ReplayMiss extends ReplayError {
  readonly code: string;

  constructor(message: string, code: string) {
    super(message);
    this.code = code;
  }
}

/** The call failed when it was recorded. */
export class RecordedError extends ReplayError {
  /** What was recorded of the failure. */
  readonly output: Json | undefined;

  constructor(message: string, output: Json | undefined) {
    super(message);
    this.output = output;
  }
}

/** The process ended with a status other than 0. */
export class ReplayEnded extends ReplayError {
  /**
   * 1 if there is no such recording, or if a recording was not used and that was to fail; `null` if the process was
   * killed.
   */
  readonly status: number | null;
  /** What it wrote to standard error. */
  readonly stderr: string;

  constructor(status: number | null, stderr: string) {
    super(`runvault ended with status ${status}${stderr === "" ? "" : `: ${stderr.trim()}`}`);
    this.status = status;
    this.stderr = stderr;
  }
}

export interface ReplayOptions extends ProgramOptions {
  /** Whether requests must be in the order of the recording. */
  sequential?: boolean;
  /** Whether `finish` fails if a recording was not used. */
  failUnused?: boolean;
  /** Whether a prompt that is requested more often than it was recorded gets its last recording again. */
  repeatLast?: boolean;
}

/** A recording, replayed by a process. It ends with `finish()` or `close()`. */
export class Replay {
  readonly #process: ChildProcess;
  readonly #started: Promise<void>;
  readonly #ended: Promise<number | null>;
  readonly #lines: AsyncGenerator<string>;
  #stderr = "";
  /** The response to the last request: there is one for each, in their order. */
  #last: Promise<unknown> = Promise.resolve();

  /**
   * Starts the process. If that is not possible, the methods reject with the reason.
   *
   * @param recording A session or a run: a hash, a prefix of one, a tag, or `any` for all sessions.
   */
  constructor(recording: string, options: ReplayOptions = {}) {
    const { sequential, failUnused, repeatLast } = options;
    const args = ["replay", recording, "--serve-stdio"];
    if (sequential) args.push("--sequential");
    if (failUnused) args.push("--fail-unused");
    if (repeatLast) args.push("--repeat", "last");
    const { child, started } = start(options, args, "pipe");
    this.#process = child;
    this.#started = started;
    this.#ended = new Promise((resolve) => child.once("close", resolve));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (this.#stderr += text));
    // If the process has ended, the end of its responses shows that.
    child.stdin?.on("error", () => {});
    this.#lines = lines(child);
  }

  /** Returns the response to a prompt; for the n-th request of it, that of its n-th recording. */
  async respond(prompt: string): Promise<string> {
    return (await this.ask({ prompt })).response;
  }

  /** Returns what a run recorded as the output of this call of a tool. */
  async call(tool: string, args: Json): Promise<Json | undefined> {
    return (await this.ask({ tool, arguments: args })).output;
  }

  /** Returns the response to any request of the protocol. */
  async ask(request: ReplayQuestion): Promise<ReplayResponse> {
    await this.#started;
    this.#process.stdin?.write(`${JSON.stringify(request)}\n`);
    const line = this.#last.then(() => this.#lines.next());
    this.#last = line.catch(() => {});
    const { value, done } = await line;
    if (done) throw new ReplayEnded(await this.#ended, this.#stderr);
    const response = JSON.parse(value) as ReplayResponse | ErrorLine;
    if (!("error" in response)) return response;
    const { code, message, output } = response.error;
    throw code === "recorded_error" ? new RecordedError(message, output) : new ReplayMiss(message, code);
  }

  /** Ends the process, and returns its status, which is 0 if there was no error. */
  async close(): Promise<number | null> {
    await this.#started;
    await this.#last;
    this.#process.stdin?.end();
    // It ends when all of its responses are read.
    while (!(await this.#lines.next()).done);
    return await this.#ended;
  }

  /** Ends the process, and rejects with `ReplayEnded` if its status is not 0. */
  async finish(): Promise<void> {
    const status = await this.close();
    if (status !== 0) throw new ReplayEnded(status, this.#stderr);
  }
}

/** The lines of standard output. Those of node:readline also end at U+2028. */
async function* lines(child: ChildProcess): AsyncGenerator<string> {
  if (child.stdout === null) return;
  let parts: string[] = [];
  for await (const chunk of child.stdout.setEncoding("utf8") as AsyncIterable<string>) {
    const [first = "", ...rest] = chunk.split("\n");
    parts.push(first);
    for (const part of rest) {
      yield parts.join("");
      parts = [part];
    }
  }
}
