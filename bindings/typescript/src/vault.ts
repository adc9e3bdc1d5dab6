import type {
  CoreHash,
  DiffAnswer,
  FieldMatch,
  FoundArtifact,
  LinkSummary,
  ListRow,
  ViewAnswer,
} from "./api.js";
import { run } from "./command.js";
import { CommandFailed, type ProgramOptions } from "./options.js";

/** A kind of artifacts, or all of them. */
export type What = "artifacts" | "sessions" | "runs" | "traces" | "contracts" | "packs" | "attachments";

/** Which time is compared and listed. */
export type TimeBasis = "first-seen" | "last-seen" | "created" | "finished";

/** Conditions on artifacts. All must hold. */
export interface Conditions {
  /** Sent this prompt. */
  prompt?: string;
  /** Sent the prompt with this SHA-256. */
  promptHash?: string;
  /** Received a response with this SHA-256. */
  responseHash?: string;
  /** Mentions this hash in any role. */
  mentions?: string;
  /** Has this run id. */
  runId?: string;
  /** Has this trace id. */
  traceId?: string;
  /** Used this model. */
  model?: string;
  /** Used this adapter. */
  adapter?: string;
  /** Called this tool. */
  tool?: string;
  /** Has a step with an HTTP request to this host. */
  host?: string;
  /** Has a step that failed or is an error. */
  hasError?: boolean;
  /** Have these values of attributes. */
  attributes?: Record<string, string>;
  /** Have these labels. `true` stands for any value. */
  labels?: Record<string, string | true>;
  /** Has a note that contains this text. */
  note?: string;
  /** Created at this time or later, or what `by` names: a date, an RFC 3339 time, `yesterday`, or an age such as `7d`. */
  since?: string;
  /** Seen before this time. */
  until?: string;
  /** Which time `since` and `until` compare. */
  by?: TimeBasis;
}

export interface FindOptions extends Conditions {
  /** Maximum number of artifacts. */
  limit?: number;
  /** The order, such as `created` or `duration`; newest first if it is not given. */
  sort?: string;
}

export interface ListOptions extends Conditions {
  /** Maximum number of rows. */
  limit?: number;
  /** The order, such as `created` or `errors`; newest first if it is not given. */
  sort?: string;
  /** Whether each artifact is a row of its own. */
  flat?: boolean;
}

export interface SearchOptions extends Conditions {
  /** Only passages of these fields. */
  in?: Array<"response" | "prompt" | "tool" | "output" | "step" | "contract" | "pack">;
  /** Maximum number of hits. */
  limit?: number;
  /** Whether all passages of an artifact are listed. */
  all?: boolean;
}

export interface LinksOptions {
  /** Maximum distance, in links. */
  depth?: number;
  /** Only links of this relation. */
  relation?: string;
  /** Only links in this direction. */
  direction?: "out" | "in" | "both";
  /** Maximum number of links. */
  limit?: number;
}

export interface DiffOptions {
  /** Whether values that vary between identical runs are compared. */
  all?: boolean;
  /** Only the first difference. */
  first?: boolean;
  /** Only the numbers of differences. */
  stat?: boolean;
}

export interface ViewOptions {
  /** The number of the first step. */
  from?: number;
  /** The number of the last step. */
  to?: number;
  /** Only steps of this type or class. */
  only?: string;
  /** Maximum number of steps. */
  limit?: number;
  /** Whether each step is printed as it is recorded, too. */
  recorded?: boolean;
}

export interface GetOptions {
  /** A file of an export pack. */
  member?: string;
  /** A capture, instead of the preferred one. */
  capture?: string;
}

/** A link, as `links` lists it. */
export type Link = LinkSummary & {
  /** The artifact from which the link is followed. */
  from: CoreHash;
  /** The distance of the other end from the start, in links. */
  depth: number;
};

/** A vault, read by the program `runvault`: each call runs it once. */
export class Vault {
  readonly #options: ProgramOptions;

  constructor(options: ProgramOptions = {}) {
    this.#options = options;
  }

  /** Returns the artifacts that match all conditions. */
  async find(what: What = "artifacts", options: FindOptions = {}): Promise<FoundArtifact[]> {
    const { limit, sort, ...conditions } = options;
    return await this.#lines(["find", what, ...conditionsOf(conditions), ...flags({ limit, sort })]);
  }

  /** Returns runs with their times, models, steps and errors: the artifacts of a run are one row. */
  async list(what: What = "artifacts", options: ListOptions = {}): Promise<ListRow[]> {
    const { limit, sort, flat, ...conditions } = options;
    return await this.#lines(["list", what, ...conditionsOf(conditions), ...flags({ limit, sort, flat })]);
  }

  /** Returns the passages that match a query, best first. The first search builds the index. */
  async search(query: string, options: SearchOptions = {}): Promise<FieldMatch[]> {
    const { in: fields, limit, all, ...conditions } = options;
    const inside = (fields ?? []).flatMap((field) => ["--in", field]);
    return await this.#lines(["search", ...inside, ...conditionsOf(conditions), ...flags({ limit, all }), "--", query]);
  }

  /** Returns the links of an artifact, nearest first. */
  async links(artifact: string, options: LinksOptions = {}): Promise<Link[]> {
    return await this.#lines(["links", ...flags({ ...options }), "--", artifact]);
  }

  /** Compares two artifacts of one kind. */
  async diff(one: string, other: string, options: DiffOptions = {}): Promise<DiffAnswer> {
    return await this.#document(["diff", ...flags({ ...options }), "--", one, other], [0, 1]);
  }

  /** Returns the transcript of an artifact. */
  async view(artifact: string, options: ViewOptions = {}): Promise<ViewAnswer> {
    return await this.#document(["view", ...flags({ ...options }), "--", artifact], [0]);
  }

  /** Returns the bytes of an artifact, as they were added. */
  async get(artifact: string, options: GetOptions = {}): Promise<Uint8Array> {
    return await this.#run(["get", ...flags({ ...options }), "--", artifact], [0]);
  }

  async #lines<T>(args: string[]): Promise<T[]> {
    const text = (await this.#run(withJson(args), [0, 1])).toString("utf8");
    const lines = text.split("\n").filter((line) => line !== "");
    return lines.map((line) => JSON.parse(line) as T);
  }

  async #document<T>(args: string[], statuses: number[]): Promise<T> {
    return JSON.parse((await this.#run(withJson(args), statuses)).toString("utf8")) as T;
  }

  async #run(args: string[], statuses: number[]): Promise<Buffer> {
    const { status, stdout, stderr } = await run(this.#options, args);
    // Status 1 says that there are differences, or that nothing was found; or, with a message, why there is no answer.
    const isError = status === 1 && /^error: /m.test(stderr);
    if (status === null || !statuses.includes(status) || isError) throw new CommandFailed(args, status, stderr);
    return stdout;
  }
}

/** Returns the arguments with `--json` before what follows `--`. */
function withJson([command, ...args]: string[]): string[] {
  return [command ?? "", "--json", ...args];
}

type Flag = string | number | boolean | undefined;

/** Returns options as arguments, such as `--prompt-hash=…` of `promptHash`. */
function flags(options: Record<string, Flag>): string[] {
  return Object.entries(options).flatMap(([name, value]) => {
    const option = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    if (value === undefined || value === false) return [];
    return value === true ? [option] : [`${option}=${value}`];
  });
}

function conditionsOf({ attributes = {}, labels = {}, ...others }: Conditions): string[] {
  const attribute = Object.entries(attributes).map(([name, value]) => `--attr=${name}=${value}`);
  const label = Object.entries(labels).map(([key, value]) => `--label=${value === true ? key : `${key}=${value}`}`);
  return [...attribute, ...label, ...flags(others)];
}
