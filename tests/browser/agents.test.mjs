// Recordings of agents that were made with the clients of model providers: the page has what the program saw.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { SCENE, accessible, launch, open, picture, watched } from "./browser.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

/** Returns what the conversation on a page says, in the form in which the programs print it. */
function said(page) {
  return page.locator(".calls").evaluate((calls) => {
    const text = (element) => element.textContent.trim();
    const value = (row) => [row.dataset.pointer.slice(1), text(row.querySelector(".value"))];
    const result = (shown) => text(shown.querySelector("pre, .value"));
    return [...calls.querySelectorAll(".user .markdown, .tool-call, .result, .assistant .markdown")].map((shown) => {
      if (shown.matches(".tool-call")) {
        const rows = [...shown.querySelectorAll(":scope > .json li")];
        return { call: text(shown.querySelector("strong")), arguments: Object.fromEntries(rows.map(value)) };
      }
      if (shown.matches(".result")) return { result: result(shown) };
      return shown.closest(".user") ? { asked: text(shown) } : { text: text(shown) };
    });
  });
}

for (const { client, run, saw } of SCENE.agents) {
  test(`what the program saw that uses ${client} is on the page, once and in order`, async () => {
    await watched(browser, {}, async (page) => {
      await open(page, `/artifact/${run}`);
      const shown = saw.map((one) => (one.text ? { text: one.text.trim() } : one));
      assert.deepEqual(await said(page), shown);
      assert.deepEqual(Object.keys(Object.assign({}, ...shown)).sort(), ["arguments", "asked", "call", "result", "text"]);
      await accessible(page, client);
      await picture(page, `agent-${client}`);
    });
  });
}
