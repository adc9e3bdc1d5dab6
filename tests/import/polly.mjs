// Asks a server through Polly.JS, and prints its recording.
//
// usage: node --input-type=module - URL DIRECTORY < polly.mjs, where the packages @pollyjs/core, @pollyjs/adapter-fetch and
// @pollyjs/persister-fs are installed

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import FetchAdapter from "@pollyjs/adapter-fetch";
import { Polly } from "@pollyjs/core";
import FSPersister from "@pollyjs/persister-fs";

const [url, directory] = process.argv.slice(2);
Polly.register(FetchAdapter);
Polly.register(FSPersister);
const polly = new Polly("asks", {
  adapters: ["fetch"],
  persister: "fs",
  persisterOptions: { fs: { recordingsDir: directory } },
  logLevel: "silent",
});

const headers = { "content-type": "application/json", authorization: "Bearer sk-not-a-key-0123456789" };
const messages = [{ role: "user", content: "hello \u{1f600}" }];
for (const body of [{ model: "m-1", messages, temperature: 0 }, { model: "m-1", messages, stream: true }]) {
  await (await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body: JSON.stringify(body) })).text();
}
await (await fetch(`${url}/v1/models`, { headers })).text();
await polly.stop();

const [folder] = readdirSync(directory);
process.stdout.write(readFileSync(join(directory, folder, "recording.har")));
