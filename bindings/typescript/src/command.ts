import { spawn, type ChildProcess } from "node:child_process";

import { ProgramNotFound, type ProgramOptions } from "./options.js";

/** What a program wrote. */
export interface Output {
  status: number | null;
  stdout: Buffer;
  stderr: string;
}

/** Returns the program to run. */
export function programOf(options: ProgramOptions): string {
  return options.binary ?? (process.env["RUNVAULT_BIN"] || "runvault");
}

/** Starts the program; the promise is rejected if that is not possible. */
export function start(
  options: ProgramOptions,
  args: readonly string[],
  stdin: "pipe" | "ignore",
): { child: ChildProcess; started: Promise<void> } {
  const binary = programOf(options);
  const vault = options.vault === undefined ? {} : { RUNVAULT_VAULT: options.vault };
  const child = spawn(binary, args, {
    env: { ...process.env, ...options.env, ...vault },
    stdio: [stdin, "pipe", "pipe"],
  });
  const started = new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (error) => reject(new ProgramNotFound(binary, error)));
  });
  // Whoever needs the program awaits it; nobody else has to.
  started.catch(() => {});
  return { child, started };
}

/** Runs the program to its end. */
export async function run(options: ProgramOptions, args: readonly string[]): Promise<Output> {
  const { child, started } = start(options, args, "ignore");
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout?.on("data", (part: Buffer) => stdout.push(part));
  child.stderr?.on("data", (part: Buffer) => stderr.push(part));
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  await started;
  const status = await ended;
  return { status, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString("utf8") };
}
