import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { afterAll, beforeAll, expect, test } from "vitest";

import { CommandFailed, ProgramNotFound, RecordedError, Replay, ReplayEnded, ReplayMiss, Vault } from "../src/index.js";
import { defectsOf } from "./schema.js";

const examples = fileURLToPath(new URL("../../../examples", import.meta.url));
const SESSION = "4df877dec7f4";
const SMALL = "103ef1c54b58";
const RUN = "3941d389b337";
const SUMMARY = "Summarise ticket 4711 in one sentence.";

const directory = mkdtempSync(join(tmpdir(), "runvault-"));
const options = { vault: join(directory, "v.vault"), env: { RUNVAULT_CONFIG: join(directory, "config.toml") } };
const vault = new Vault(options);

beforeAll(() => {
  const program = process.env["RUNVAULT_BIN"] ?? "runvault";
  const env = { ...process.env, ...options.env, RUNVAULT_VAULT: options.vault };
  const run = (...args: string[]) => execFileSync(program, args, { env, stdio: ["ignore", "ignore", "pipe"] });
  run("init");
  run("add", examples);
  run("label", "set", SESSION, "team=support");
  run("index", "build");
});

afterAll(() => rmSync(directory, { recursive: true }));

/** Checks that every element has the type of a schema. */
function haveType(name: string, values: unknown[]): void {
  expect(values.length).toBeGreaterThan(0);
  for (const value of values) expect(defectsOf(name, value)).toEqual([]);
}

test("find returns artifacts", async () => {
  haveType("FoundArtifact", await vault.find());
  const found = await vault.find("sessions", { prompt: SUMMARY, labels: { team: "support" } });
  haveType("FoundArtifact", found);
  expect(found.map(({ kind, labels }) => [kind, labels])).toEqual([["model_io", { team: "support" }]]);
  expect(await vault.find("artifacts", { labels: { team: true }, limit: 5 })).toHaveLength(1);
  expect(await vault.find("runs", { attributes: { run_id: "none" } })).toEqual([]);
});

test("list returns a row for each run", async () => {
  const rows = await vault.list("runs", { runId: "run-triage-4711" });
  haveType("ListRow", rows);
  expect(rows.map((row) => row.run_id)).toEqual(["run-triage-4711"]);
});

test("search returns passages", async () => {
  const found = await vault.search("fix is on its way", { in: ["response"] });
  haveType("FieldMatch", found);
  expect(found[0]?.text).toContain("fix is on its way");
  expect(await vault.search("-nothing-like-that")).toEqual([]);
});

test("links returns links", async () => {
  const links = await vault.links(RUN, { depth: 2 });
  haveType("LinkSummary", links);
  expect(links[0]).toMatchObject({ depth: 1, from: expect.stringContaining(RUN) });
  expect(await vault.links(RUN, { relation: "governs", direction: "out" })).toEqual([]);
});

test("diff returns changes, and says if there are none", async () => {
  const diff = await vault.diff(SESSION, SMALL);
  haveType("DiffAnswer", [diff]);
  expect(diff.different).toBe(true);
  expect(diff.changes?.[0]?.says).toBe("model_id differs");
  expect((await vault.diff(SESSION, SESSION, { stat: true })).different).toBe(false);
});

test("view returns steps", async () => {
  const view = await vault.view(RUN, { limit: 2 });
  haveType("ViewAnswer", [view]);
  expect(view.steps.map((step) => step.index)).toEqual([0, 1]);
});

test("get returns bytes", async () => {
  const bytes = await vault.get(RUN);
  expect(Buffer.compare(bytes, readFileSync(join(examples, "run.rpk")))).toBe(0);
});

test("an artifact that is not there is an error with the program's message", async () => {
  const failure = await vault.get("000000000000").catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(CommandFailed);
  expect((failure as CommandFailed).status).toBe(1);
  expect((failure as CommandFailed).message).toContain("000000000000");
});

test("a program that cannot be run is an error that says how to name another one", async () => {
  const failure = new Vault({ binary: join(directory, "no-such-program") }).find();
  await expect(failure).rejects.toThrow(ProgramNotFound);
  await expect(failure).rejects.toThrow("RUNVAULT_BIN");
  await expect(new Replay(SESSION, { binary: join(directory, "none") }).respond("a")).rejects.toThrow(ProgramNotFound);
});

test("a session is replayed", async () => {
  const replay = new Replay(SESSION, options);
  const summary = "The export to CSV stops after 1,000 rows since the last update.";
  // Requests need not wait for each other.
  const [first, missing] = await Promise.allSettled([replay.respond(SUMMARY), replay.respond("And in two?")]);
  expect(first).toEqual({ status: "fulfilled", value: summary });
  expect(missing).toMatchObject({ status: "rejected", reason: expect.any(ReplayMiss) });
  expect((missing as PromiseRejectedResult).reason).toMatchObject({ code: "not_recorded", name: "ReplayMiss" });
  await replay.finish();
});

test("recordings that are not used fail if that is asked for", async () => {
  const replay = new Replay(SESSION, { ...options, failUnused: true });
  await replay.respond(SUMMARY);
  const failure = await replay.finish().catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ReplayEnded);
  expect((failure as ReplayEnded).message).toContain("2 of 3 recordings unused");
});

test("the tools of a run are replayed", async () => {
  const replay = new Replay(RUN, options);
  const output = await replay.call("tracker.label", { ticket_id: "4711", label: "bug" });
  expect(output).toBeTypeOf("object");
  await expect(replay.call("tracker.label", {})).rejects.not.toThrow(RecordedError);
  await replay.close();
});

test("a recording that is not there ends the process", async () => {
  const replay = new Replay("000000000000", options);
  await expect(replay.respond("a")).rejects.toThrow(ReplayEnded);
  expect(await replay.close()).toBe(1);
});
