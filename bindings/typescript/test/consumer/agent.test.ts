import { recordCalls } from "runvault/vitest";
import { afterEach, describe, expect, test } from "vitest";

import { explanationOf, labelOf } from "./agent.js";

const upstream = process.env["UPSTREAM"];
const calls = recordCalls(upstream === undefined ? {} : { upstreams: { openai: upstream } });
const ticket = process.env["TICKET"] ?? "the export stops";

// What is printed shows whether answers are the same.
afterEach(({ task }) => console.log(`${task.name}: replaying ${calls.isReplaying}`));

describe("an agent", () => {
  test("labels a ticket", async () => {
    console.log(await labelOf(ticket));
    if (process.env["ASK_ONCE"] === undefined) console.log(await labelOf("another"));
  });

  test("explains/streams 100 % of it", async () => {
    const parts = await explanationOf("the export stops");
    console.log(JSON.stringify(parts));
    expect(parts.length).toBeGreaterThan(1);
  });

  test("has another answer for each test", async () => {
    expect(process.env["OPENAI_BASE_URL"]).toBe(calls.openai);
    // The same prompt as in the first test, but a recording of this one.
    console.log(await labelOf("another"));
    expect(process.env["FAIL"]).toBeUndefined();
  });
});
