// A browser whose every page is watched: errors, dialogs, and requests to anything but the server fail the test.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { chromium } from "playwright-core";

const require = createRequire(import.meta.url);
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** The address of the server. */
export const BASE = process.env.RUNVAULT_ADDRESS;

/** What the vault contains, by name. */
export const SCENE = JSON.parse(process.env.RUNVAULT_SCENE);

/** How long anything may take on a busy machine. */
const PATIENCE = 120_000;

export function launch() {
  return chromium.launch({
    executablePath: process.env.RUNVAULT_CHROMIUM,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** Runs `visit` on a page, and fails if the page did anything that it must not. */
export async function watched(browser, options, visit) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  context.setDefaultTimeout(PATIENCE);
  const faults = [];
  context.on("page", (page) => {
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") {
        faults.push(`console: ${message.text()}`);
      }
    });
    page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
    page.on("dialog", async (dialog) => {
      faults.push(`dialog: ${dialog.message()}`);
      await dialog.dismiss();
    });
    page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(BASE) && !url.startsWith("data:")) {
        faults.push(`request: ${url}`);
      }
    });
  });
  try {
    await visit(await context.newPage(), context);
  } finally {
    await context.close();
  }
  assert.deepEqual(faults, []);
}

/** Opens a path of the server, which must answer with this status. */
export async function open(page, path, status = 200) {
  const response = await page.goto(new URL(path, BASE).href);
  assert.equal(response.status(), status, path);
}

/** Waits until a locator finds exactly this many elements: what a click or a key causes may come after it. */
export async function found(locator, count) {
  if (count > 0) {
    await locator.nth(count - 1).waitFor({ state: "attached" });
  }
  await locator.nth(count).waitFor({ state: "detached" });
  assert.equal(await locator.count(), count);
}

/** Fails if axe-core finds a serious or critical fault of accessibility. */
export async function accessible(page, what) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const shown = serious.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html }) => html).join(" | ")}`);
  assert.deepEqual(shown, [], what);
}

/** Writes a picture of the page, if pictures are wanted. */
export async function picture(page, name) {
  if (process.env.RUNVAULT_SCREENSHOTS) {
    await page.screenshot({ path: `${process.env.RUNVAULT_SCREENSHOTS}/${name}.png` });
  }
}
