/** Anything that JSON can say. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A request of the protocol; docs/replay.md describes it. */
export interface Request {
  prompt?: string;
  prompt_hash?: string;
  occurrence?: number;
  responder?: "model" | "tool";
  tool?: string;
  arguments?: Json;
  arguments_hash?: string;
}

/** An answer with a response. */
export interface Answer {
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

/** Something other than a recorded response. */
export class ReplayError extends Error {
  constructor(message: string);
}

/** There is no recording of what was asked; the code says why. */
export class Miss extends ReplayError {
  constructor(message: string, code: string);
  code: string;
}

/** The call failed when it was recorded; the output is what was recorded of that. */
export class RecordedError extends ReplayError {
  constructor(message: string, output: Json);
  output: Json;
}

/**
 * The process ended with a status other than 0. It is 1 if there is no such recording, or if `--fail-unused` was given and
 * a recording was not played, and `null` if the process was killed.
 */
export class Ended extends ReplayError {
  constructor(status: number | null);
  status: number | null;
}

/** A recording, played by a process of its own. It ends with `finish()` or `close()`. */
export class Replay {
  /** Starts the process. If the program cannot be run, the methods reject with the error that says so. */
  constructor(recording: string, options?: string[], program?: string, command?: "replay" | "stub");
  /** The models and tools of a run. */
  static ofRun(run: string, options?: string[], program?: string): Replay;
  /** The recorded response to a prompt; the n-th time that it is asked, that of its n-th recording. */
  respond(prompt: string): Promise<string>;
  /** What the run recorded as the output of this call of a tool. */
  call(tool: string, args: Json): Promise<Json>;
  /** The answer to any request of the protocol. Rejects with `Miss` or `RecordedError` if it has no response. */
  ask(request: Request): Promise<Answer>;
  /** Ends the process and gives its status, which is 0 if all is well. */
  close(): Promise<number | null>;
  /** Ends the process, and rejects with `Ended` if its status is not 0. */
  finish(): Promise<void>;
}
