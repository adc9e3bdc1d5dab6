import type { ChildProcess } from "node:child_process";

import { start } from "./command.js";
import type { ProgramOptions } from "./options.js";

/** What a gateway does with calls. */
export type GatewayMode = "record" | "replay" | "auto" | "pass";

export interface GatewayOptions extends ProgramOptions {
  /** What it does with calls. Default: `auto`. */
  mode?: GatewayMode;
  /** The only recording to replay from: a hash, a tag with its `@`, or `latest`. */
  session?: string;
  /** How fast streams are replayed. */
  pace?: "fast" | "recorded";
  /** The URLs of servers, by the name of the provider: `openai`, `anthropic`, `gemini` or another one. */
  upstreams?: Record<string, string>;
  /** Members of requests that are not compared: names, or JSON Pointers. */
  ignore?: string[];
  /** Rules that replace text before requests are compared: `s/PATTERN/TEXT/` or `POINTER=s/PATTERN/TEXT/`. */
  normalize?: string[];
  /** Regular expressions of text that is not stored. */
  redact?: string[];
  /** Labels of all runs. */
  labels?: Record<string, string>;
  /** The directory for the calls of runs that are not finished. */
  spool?: string;
  /** Receives what the program writes to standard error. Default: only kept for errors. */
  onMessage?: (text: string) => void;
}

/** A run that was stored. */
export interface FinishedRun {
  run_id: string;
  name: string | null;
  /** The core hash of the run pack. */
  run_pack: string;
  run_packs: string[];
  /** The core hashes of the sessions. */
  sessions: string[];
  calls: number;
  failed: number;
}

/** A recording that no call of a run used. */
export interface UnusedRecording {
  /** The core hash of the run pack. */
  core_hash: string;
  /** The number of the step with the request. */
  step: number;
  provider: string;
  endpoint: string;
  /** The beginning of what the request is compared by. */
  prompt: string;
}

/** What a finished run recorded and replayed. */
export interface RunReport {
  /** What was stored; `null` if nothing was recorded. */
  finished: FinishedRun | null;
  replayed: {
    /** Number of calls that were answered from recordings. */
    replayed: number;
    /** Number of calls that were to be replayed and had no recording. */
    missed: number;
    /** What the first of them differed in from the nearest recorded request. */
    misses: string[];
    unused: UnusedRecording[];
  };
}

/** Labels of a run, and the recording from which its calls are replayed. */
export interface RunOptions {
  labels?: Record<string, string>;
  /** The core hash of a run pack or a session: calls are only replayed, whatever the mode. */
  recording?: string;
}

interface Running {
  child: ChildProcess;
  ended: Promise<number | null>;
  messages: () => string;
}

/** What `GET /_runvault/status` returns. */
interface Status {
  variables: Record<string, string>;
  keys: string[];
}

/** Running gateways end with this process. */
const running = new Set<ChildProcess>();
let isWatched = false;

function endWithProcess(child: ChildProcess): void {
  running.add(child);
  child.once("exit", () => running.delete(child));
  if (isWatched) return;
  isWatched = true;
  process.once("exit", () => running.forEach((gateway) => gateway.kill("SIGTERM")));
}

/** A process `runvault gateway`. It ends with `stop()`, and at the latest with this process. */
export class Gateway {
  readonly #process: ChildProcess;
  readonly #ended: Promise<number | null>;
  readonly #messages: () => string;
  /** Its address, such as `http://127.0.0.1:4711`. */
  readonly url: string;
  /** The variables that point clients at it, such as `OPENAI_BASE_URL`. */
  readonly variables: Readonly<Record<string, string>>;
  /** The variables in which clients expect a key, such as `OPENAI_API_KEY`. */
  readonly keys: readonly string[];

  private constructor({ child, ended, messages }: Running, url: string, { variables, keys }: Status) {
    this.#process = child;
    this.#ended = ended;
    this.#messages = messages;
    this.url = url;
    this.variables = variables;
    this.keys = keys;
  }

  /** Starts a gateway at a free port of this machine. */
  static async start(options: GatewayOptions = {}): Promise<Gateway> {
    const { child, started } = start(options, argumentsOf(options), "ignore");
    let stderr = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      stderr = (stderr + text).slice(-10_000);
      options.onMessage?.(text);
    });
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    await started;
    endWithProcess(child);
    const url = await addressOf(child);
    if (url === undefined) {
      const status = await ended;
      throw new Error(`the gateway did not start: ${stderr.trim() || `status ${status}`}`);
    }
    const status = (await (await fetch(`${url}/_runvault/status`)).json()) as Status;
    return new Gateway({ child, ended, messages: () => stderr }, url, status);
  }

  /** Returns a run: calls with its URLs belong together. */
  run(name: string, options: RunOptions = {}): GatewayRun {
    return new GatewayRun(this, name, options);
  }

  /** Finishes all runs, and ends the process. Rejects if a run could not be stored. */
  async stop(): Promise<void> {
    this.#process.kill("SIGTERM");
    const status = await this.#ended;
    if (status !== 0) throw new Error(`the gateway ended with status ${status}: ${this.#messages().trim()}`);
  }
}

/** A run of a gateway. */
export class GatewayRun {
  readonly #gateway: Gateway;
  readonly #options: RunOptions;
  readonly name: string;

  constructor(gateway: Gateway, name: string, options: RunOptions) {
    this.#gateway = gateway;
    this.#options = options;
    this.name = name;
  }

  /** Returns the prefix of the paths of its calls. */
  #prefix(labels: Record<string, string>): string {
    const { recording } = this.#options;
    const run = `/run/${encodeURIComponent(this.name)}`;
    const label = Object.entries({ ...this.#options.labels, ...labels }).map(
      ([key, value]) => `/label/${encodeURIComponent(key)}=${encodeURIComponent(value)}`,
    );
    return [run, ...label, recording === undefined ? "" : `/recording/${recording}`].join("");
  }

  /** Returns the base URL for the clients of a provider; `path` is what they expect it to end with, such as `/v1`. */
  baseUrl(provider: string, path = ""): string {
    return `${this.#gateway.url}${this.#prefix({})}/${provider}${path}`;
  }

  /** The variables that point clients at this run. */
  get variables(): Record<string, string> {
    const { url, variables } = this.#gateway;
    const prefix = this.#prefix({});
    const entries = Object.entries(variables);
    return Object.fromEntries(entries.map(([name, value]) => [name, url + prefix + value.slice(url.length)]));
  }

  /** Stores the run with more labels, and returns what was recorded and replayed. */
  async finish(labels: Record<string, string> = {}): Promise<RunReport> {
    const answer = await fetch(`${this.#gateway.url}${this.#prefix(labels)}/_runvault/finish`, { method: "POST" });
    const document = (await answer.json()) as RunReport & { detail?: string };
    if (!answer.ok) throw new Error(`the run ${this.name} is not finished: ${document.detail ?? answer.status}`);
    return document;
  }
}

function argumentsOf(options: GatewayOptions): string[] {
  const { mode = "auto", session, pace, upstreams = {}, labels = {}, spool } = options;
  const args = ["gateway", "--listen=127.0.0.1:0", `--mode=${mode}`];
  const add = (name: string, values: string[]) => args.push(...values.map((value) => `--${name}=${value}`));
  if (mode !== "replay") args.push("--create");
  if (session !== undefined) add("session", [session]);
  if (pace !== undefined) add("pace", [pace]);
  if (spool !== undefined) add("spool", [spool]);
  add("upstream", Object.entries(upstreams).map(([name, url]) => `${name}=${url}`));
  // A comma separates several members.
  add("ignore", options.ignore ?? []);
  add("normalize", options.normalize ?? []);
  add("redact", options.redact ?? []);
  add("label", Object.entries(labels).map(([key, value]) => `${key}=${value}`));
  return args;
}

/** Returns the address of a gateway, of the first line that it prints; `undefined` if it ends before that. */
async function addressOf(child: ChildProcess): Promise<string | undefined> {
  const line = await new Promise<string>((resolve) => {
    let text = "";
    child.stdout?.setEncoding("utf8").on("data", (part: string) => {
      text += part;
      if (text.includes("\n")) resolve(text);
    });
    child.stdout?.once("close", () => resolve(text));
  });
  return /=(http:\/\/[^/]+)\/.*\n/.exec(line)?.[1];
}
