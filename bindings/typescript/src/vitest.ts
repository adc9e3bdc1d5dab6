import { relative } from "node:path";

import { afterAll, afterEach, beforeAll, beforeEach, expect, type RunnerTestCase } from "vitest";

import type { FoundArtifact } from "./api.js";
import { run } from "./command.js";
import { Gateway, type GatewayOptions, type GatewayRun, type RunReport, type UnusedRecording } from "./gateway.js";
import { CommandFailed } from "./options.js";
import { Vault } from "./vault.js";

/**
 * What tests do with calls of models: `auto` records those of a test without a recording and replays all others,
 * `record` records all of them again, `replay` never asks a server.
 */
export type TestMode = "auto" | "record" | "replay";

export interface TestOptions extends Omit<GatewayOptions, "mode"> {
  /** Default: the variable `RUNVAULT_MODE`, else `auto`. */
  mode?: TestMode;
  /**
   * What happens if a recording of a test is not used. Default: the variable `RUNVAULT_UNUSED`, else `ignore`. With
   * `session`, all tests of the file together use it.
   */
  unused?: "ignore" | "warn" | "fail";
  /** Whether the variables of clients, such as `OPENAI_BASE_URL`, are set while a test runs. Default: true. */
  environment?: boolean;
}

/** The key of clients of which calls are only replayed: most clients do not start without one. */
const REPLAY_KEY = "runvault-replay";

/** Labels of recordings: the file of a test, and how the test ended. */
const FILE = "test-file";
const RESULT = "test-result";

/** Maximum size of a run's name in bytes, as of a label. */
const MAX_NAME = 1_024;

/** The calls of the test that is running. */
export interface TestCalls {
  /** The base URL for `openai`. */
  readonly openai: string;
  /** The base URL for `@anthropic-ai/sdk`. */
  readonly anthropic: string;
  /** The base URL for `@google/genai`. */
  readonly gemini: string;
  /** The base URL for the clients of a provider; `path` is what they expect it to end with, such as `/v1`. */
  baseUrl(provider: string, path?: string): string;
  /** The name of the run: the file and the names of the test. */
  readonly name: string;
  /** Whether calls are replayed. */
  readonly isReplaying: boolean;
}

/**
 * Records the calls of models of each test in this file the first time that it passes, and replays them after that.
 *
 * A gateway is started before the first test of the file, and each test is a run that has the test's name. A test fails
 * if a call that is replayed was not recorded.
 */
export function recordCalls(options: TestOptions = {}): TestCalls {
  const calls = new Calls(options);
  beforeAll(async () => await calls.begin());
  beforeEach(async ({ task }) => await calls.beginTest(task));
  afterEach(async ({ task }) => await calls.endTest(task));
  afterAll(async () => await calls.end());
  return calls;
}

interface Current {
  run: GatewayRun;
  test: string;
  isReplaying: boolean;
  /** The values of variables before the test. */
  before: Map<string, string | undefined>;
}

class Calls implements TestCalls {
  readonly #options: TestOptions;
  readonly #mode: TestMode;
  #gateway: Gateway | undefined;
  #file = "";
  /** The run packs of the tests of the file, by name. */
  readonly #recordings = new Map<string, string>();
  #current: Current | undefined;
  /** With `session`, what no test used so far. */
  #left: UnusedRecording[] | undefined;

  constructor(options: TestOptions) {
    this.#options = options;
    this.#mode = options.mode ?? modeOf(process.env["RUNVAULT_MODE"]);
  }

  get openai(): string {
    return this.baseUrl("openai", "/v1");
  }

  get anthropic(): string {
    return this.baseUrl("anthropic");
  }

  get gemini(): string {
    return this.baseUrl("gemini");
  }

  baseUrl(provider: string, path = ""): string {
    return this.#running.run.baseUrl(provider, path);
  }

  get name(): string {
    return this.#running.test;
  }

  get isReplaying(): boolean {
    return this.#running.isReplaying;
  }

  get #running(): Current {
    if (this.#current === undefined) throw new Error("no test is running: calls belong to a test");
    return this.#current;
  }

  /** Starts the gateway, and looks for recordings of the tests of the file. */
  async begin(): Promise<void> {
    const { session } = this.#options;
    this.#file = relative(process.cwd(), expect.getState().testPath ?? "").replaceAll("\\", "/");
    // A test without a recording is recorded as a whole, so that calls of other tests are not mixed into it.
    const mode = session !== undefined || this.#mode === "replay" ? "replay" : "record";
    this.#gateway = await Gateway.start({ ...this.#options, mode });
    if (session !== undefined || this.#mode === "record") return;
    const labels = { [FILE]: this.#file, [RESULT]: "passed" };
    // Newest first.
    for (const found of await recordingsOf(this.#options, labels)) {
      const name = found.labels?.["run"];
      if (name !== undefined && !this.#recordings.has(name)) this.#recordings.set(name, found.core_hash);
    }
  }

  async beginTest(task: RunnerTestCase): Promise<void> {
    if (this.#gateway === undefined) throw new Error("the gateway did not start");
    if (this.#current !== undefined) {
      throw new Error(`${this.#current.test} is still running: tests with recorded calls run one after the other`);
    }
    const test = runName(this.#file, task);
    const recording = this.#recordings.get(test);
    const isReplaying = recording !== undefined || this.#mode === "replay" || this.#options.session !== undefined;
    const labels = { [FILE]: this.#file };
    const run = this.#gateway.run(test, recording === undefined ? { labels } : { labels, recording });
    this.#current = { run, test, isReplaying, before: new Map() };
    if (this.#options.environment === false) return;
    for (const [name, value] of Object.entries(run.variables)) this.#set(name, value);
    const keys = isReplaying ? this.#gateway.keys.filter((key) => !process.env[key]) : [];
    for (const key of keys) this.#set(key, REPLAY_KEY);
  }

  #set(name: string, value: string): void {
    this.#running.before.set(name, process.env[name]);
    process.env[name] = value;
  }

  /** Finishes the run of a test, and fails if a call was not recorded, or a recording was not used. */
  async endTest(task: RunnerTestCase): Promise<void> {
    const current = this.#running;
    this.#current = undefined;
    for (const [name, value] of current.before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
    const hasPassed = (task.result?.state === "fail") === (task.fails === true);
    const report = await current.run.finish(current.isReplaying ? {} : { [RESULT]: hasPassed ? "passed" : "failed" });
    const { missed, unused } = report.replayed;
    if (missed > 0) throw new Error(missText(current, report));
    if (!hasPassed || !current.isReplaying) return;
    if (this.#options.session === undefined) {
      this.#report(`${current.test} did not use`, unused);
    } else {
      const isLeft = (other: UnusedRecording) => unused.some((one) => idOf(one) === idOf(other));
      this.#left = (this.#left ?? unused).filter(isLeft);
    }
  }

  /** Reports recordings that were not used, as the options say. */
  #report(text: string, unused: UnusedRecording[]): void {
    const what = this.#options.unused ?? process.env["RUNVAULT_UNUSED"] ?? "ignore";
    if (unused.length === 0 || what === "ignore") return;
    const lines = unused.map((one) => `  step ${one.step} of ${one.core_hash}: ${one.endpoint} ${one.prompt}`);
    const count = unused.length === 1 ? "1 recording" : `${unused.length} recordings`;
    const message = `${text} ${count}:\n${lines.join("\n")}`;
    if (what === "fail") throw new Error(message);
    console.warn(message);
  }

  async end(): Promise<void> {
    await this.#gateway?.stop();
    this.#report(`the tests of ${this.#file} did not use`, this.#left ?? []);
  }
}

/** Returns the runs with these labels; none if there was no vault, which is created. */
async function recordingsOf(options: TestOptions, labels: Record<string, string>): Promise<FoundArtifact[]> {
  const find = async () => await new Vault(options).find("runs", { labels });
  try {
    return await find();
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    // If this is not possible, because another process created it now or there is another problem, the next call says so.
    await run(options, ["init"]);
    return await find();
  }
}

function modeOf(text: string | undefined): TestMode {
  if (text === undefined || text === "") return "auto";
  if (text === "auto" || text === "record" || text === "replay") return text;
  throw new Error(`RUNVAULT_MODE is auto, record or replay, not ${text}`);
}

function idOf({ core_hash, step }: UnusedRecording): string {
  return `${core_hash} ${step}`;
}

/** Returns the name of the run of a test: its file, its suites and its name. */
function runName(file: string, task: RunnerTestCase): string {
  const names = [task.name];
  for (let { suite } = task; suite !== undefined; suite = suite.suite) names.unshift(suite.name);
  // Control characters are not valid in names of runs.
  const name = [file, ...names.filter((name) => name !== "")].join(" > ").replace(/\p{Cc}+/gu, " ");
  if (Buffer.byteLength(name) > MAX_NAME) throw new Error(`the name of the test is longer than ${MAX_NAME} bytes`);
  return name;
}

function missText({ test }: Current, { replayed: { missed, misses } }: RunReport): string {
  const count = missed === 1 ? "1 call" : `${missed} calls`;
  const lines = misses.map((miss) => `  ${miss}`).join("\n");
  return `${test}: ${count} not recorded:\n${lines}\nRUNVAULT_MODE=record records the calls again`;
}
