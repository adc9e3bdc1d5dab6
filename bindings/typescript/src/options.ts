/** How the program is found, and which vault it uses. */
export interface ProgramOptions {
  /** The program. Default: the variable `RUNVAULT_BIN`, else `runvault` in `PATH`. */
  binary?: string;
  /** The vault: a path or a URL. Default: that of the program's settings. */
  vault?: string;
  /** Variables of the environment of the program, in addition to those of this process. */
  env?: Record<string, string>;
}

/** The program `runvault` cannot be run. */
export class ProgramNotFound extends Error {
  constructor(binary: string, cause: Error) {
    super(
      `cannot run ${binary}: ${cause.message}; install runvault, or name the program with the option "binary" or ` +
        "the variable RUNVAULT_BIN",
      { cause },
    );
    this.name = "ProgramNotFound";
  }
}

/** The program ended with a status that says that there is no answer. */
export class CommandFailed extends Error {
  /** 1 if the answer is no, 2 if the command could not run, 3 for wrong usage; `null` if it was killed. */
  readonly status: number | null;
  /** What it wrote to standard error. */
  readonly stderr: string;

  constructor(args: readonly string[], status: number | null, stderr: string) {
    const reason = stderr.trim().replace(/^error: /, "");
    super(reason || `"runvault ${args[0] ?? ""}" ended with status ${status}`);
    this.name = "CommandFailed";
    this.status = status;
    this.stderr = stderr;
  }
}
