// Replays a recorded session in place of a model.
//
//     node client.ts HASH PROMPT...    prints the response to each prompt
//
// The protocol is described in docs/replay.md. All types can be erased, so Node.js runs this as it is from version 22.18 on.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

type Answer = { id: null; response: string; error?: { code: string; message: string } };

/** There is no recorded response; the code says why. */
export class Miss extends Error {
  code: string;

  constructor(error: { code: string; message: string }) {
    super(error.message);
    this.code = error.code;
  }
}

/** A recording. The process ends with close(). */
export class Replay {
  #process;
  #lines;

  constructor(recording: string, options: string[] = [], program = "runvault") {
    const command = ["replay", recording, "--serve-stdio", ...options];
    this.#process = spawn(program, command, { stdio: ["pipe", "pipe", "inherit"] });
    // If the process has ended, the end of its answers tells that.
    this.#process.stdin.on("error", () => {});
    this.#lines = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
  }

  /** The recorded response to the prompt. Await one before asking for the next. */
  async respond(prompt: string): Promise<string> {
    this.#process.stdin.write(JSON.stringify({ prompt }) + "\n");
    const { value, done } = await this.#lines.next();
    if (done) throw new Error("runvault has ended");
    const answer: Answer = JSON.parse(value);
    if (answer.error) throw new Miss(answer.error);
    return answer.response;
  }

  /** Ends the process. Its status is 1 if --fail-unused was given and a recording was never asked for. */
  async close(): Promise<number> {
    const ended = once(this.#process, "close");
    this.#process.stdin.end();
    const [status] = await ended;
    return status;
  }
}

const [recording, ...prompts] = process.argv.slice(2);
if (recording) {
  const replay = new Replay(recording);
  for (const prompt of prompts) console.log(await replay.respond(prompt));
  await replay.close();
}
