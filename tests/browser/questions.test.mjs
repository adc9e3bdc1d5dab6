// The questions that people have about their agents, each answered in at most three clicks from the list of runs.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { launch, open, SCENE, watched } from "./browser.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

/** Most clicks for an answer. */
const CLICKS = 3;

/** Tests that a question is answered. `ask` gets the page, and a function that clicks. */
function question(name, ask) {
  test(name, async () => {
    await watched(browser, {}, async (page) => {
      await open(page, "/");
      let clicks = 0;
      await ask(page, async (locator) => {
        clicks += 1;
        await locator.click();
      });
      assert.ok(clicks <= CLICKS, `${clicks} clicks`);
    });
  });
}

const row = (page, name) => page.locator("tbody tr", { hasText: name });

question("what failed on that day, and why", async (page, click) => {
  await click(page.locator("svg.bars a", { has: page.locator(`title:text-matches("^${SCENE.day}: ")`) }));
  await click(page.locator("a.facet", { hasText: "with errors" }));
  await page.waitForURL(/errors=yes/);
  const failed = row(page, "nightly-900");
  await failed.getByText("ticket 900 is locked").waitFor();
  assert.equal(await row(page, "run-triage-4711").count(), 0);
});

question("what models answered to a prompt over time", async (page, click) => {
  await click(row(page, "warm").first().locator("a.hash").first());
  await click(page.getByRole("link", { name: "all answers" }).first());
  await page.waitForURL(/prompt\/sha256/);
  await page.getByRole("heading", { name: /answers, all the same$/ }).waitFor();
});

question("what changed between two runs", async (page, click) => {
  await click(row(page, "nightly-900").getByRole("checkbox"));
  await click(row(page, "nightly-901").getByRole("checkbox"));
  await click(page.getByRole("button", { name: "Compare selected" }));
  await page.waitForURL(/diff\?run=/);
  const marked = [page.locator("del").first(), page.locator("ins").first()];
  const texts = await Promise.all(marked.map((one) => one.innerText()));
  assert.deepEqual(texts.sort(), ["900", "901"]);
});

question("which runs used a tool", async (page, click) => {
  await click(page.locator("a.facet", { hasText: "tracker.label" }));
  await page.waitForURL(/tool=tracker.label/);
  for (const name of ["nightly-900", "nightly-901", "run-triage-4711"]) {
    await row(page, name).waitFor();
  }
});

question("who governs a run, and whether it fulfils its contract", async (page, click) => {
  await click(row(page, "run-triage-4711").locator("a.hash").first());
  await page.getByRole("heading", { name: /^Audit against contract/ }).waitFor();
  await page.getByRole("cell", { name: "2 effects not verified" }).waitFor();
  await page.getByRole("link", { name: "inconclusive" }).waitFor();
});
