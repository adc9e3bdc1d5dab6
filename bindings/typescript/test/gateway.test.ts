import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, expect, test } from "vitest";

import { Gateway, Vault, type GatewayOptions } from "../src/index.js";

const directory = mkdtempSync(join(tmpdir(), "runvault-"));
const settings = { vault: join(directory, "v.vault"), env: { RUNVAULT_CONFIG: join(directory, "config.toml") } };

/** A server of models that counts its requests. */
let server: Server;
let requests = 0;

beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume().on("end", () => {
      requests += 1;
      const message = { role: "assistant", content: `answer ${requests}` };
      response.setHeader("content-type", "application/json").end(JSON.stringify({ choices: [{ message }] }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});

afterAll(() => {
  server.close();
  rmSync(directory, { recursive: true });
});

async function start(options: GatewayOptions): Promise<Gateway> {
  const { port } = server.address() as AddressInfo;
  return await Gateway.start({ ...settings, upstreams: { openai: `http://127.0.0.1:${port}` }, ...options });
}

async function ask(baseUrl: string, content: string): Promise<{ status: number; text: string }> {
  const body = JSON.stringify({ model: "m", messages: [{ role: "user", content }] });
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${baseUrl}/chat/completions`, { method: "POST", headers, body });
  return { status: answer.status, text: await answer.text() };
}

test("a run is recorded with its labels, and replayed by its hash", async () => {
  const gateway = await start({ mode: "record", labels: { team: "support" } });
  const run = gateway.run("nightly 100 %/1", { labels: { job: "a=b/c" } });
  const recorded = await ask(run.baseUrl("openai", "/v1"), "one");
  const { finished, replayed } = await run.finish({ result: "passed" });
  expect(finished).toMatchObject({ name: "nightly 100 %/1", calls: 1, failed: 0 });
  expect(replayed).toMatchObject({ replayed: 0, missed: 0, unused: [] });
  const recording = finished?.run_pack ?? "";
  const again = gateway.run("again", { recording });
  expect(await ask(again.baseUrl("openai", "/v1"), "one")).toEqual(recorded);
  const missed = await ask(again.variables["OPENAI_BASE_URL"] ?? "", "two");
  expect(missed.status).toBe(400);
  expect(missed.text).toContain('messages[0].content differs: recorded \\"one\\", requested \\"two\\"');
  expect((await again.finish()).replayed).toMatchObject({ replayed: 1, missed: 1, unused: [] });
  const silent = await gateway.run("silent", { recording }).finish();
  expect(silent.replayed.unused).toMatchObject([{ core_hash: recording, step: 0, provider: "openai" }]);
  await gateway.stop();
  expect(requests).toBe(1);
  const labels = { run: "nightly 100 %/1", job: "a=b/c", team: "support", result: "passed" };
  const found = await new Vault(settings).find("runs", { labels });
  expect(found.map((artifact) => [artifact.core_hash, artifact.labels])).toEqual([[recording, labels]]);
});

test("a gateway names the variables of clients, and finishes runs when it stops", async () => {
  const messages: string[] = [];
  const gateway = await start({ mode: "auto", ignore: ["a", "b"], onMessage: (text) => messages.push(text) });
  expect(gateway.variables["OPENAI_BASE_URL"]).toBe(`${gateway.url}/openai/v1`);
  expect(gateway.keys).toContain("OPENAI_API_KEY");
  expect((await ask(gateway.variables["OPENAI_BASE_URL"] ?? "", "three")).status).toBe(200);
  await gateway.stop();
  expect(messages.join("")).toContain("run pack sha256:");
});

test("a gateway that does not start says why", async () => {
  const none = start({ mode: "replay", vault: join(directory, "none.vault") });
  await expect(none).rejects.toThrow(/the gateway did not start: error: .*none\.vault/s);
  await expect(start({ normalize: ["guid"] })).rejects.toThrow("guid");
});
