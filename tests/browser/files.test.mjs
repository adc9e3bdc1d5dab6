// What a person does with pages that were written to files. tests/it/server/browser.rs writes them and starts this.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { BASE, SCENE, accessible, found, launch, picture, watched } from "./browser.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const visit = (page, name) => page.goto(new URL(name, BASE).href);

/** Every page, found by following links from the index. */
async function everyPage(page, look) {
  const waiting = ["index.html"];
  const seen = new Set(waiting);
  while (waiting.length > 0) {
    const name = waiting.pop();
    await visit(page, name);
    await look(name);
    const links = await page.locator("a[href]").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
    for (const link of links.filter((one) => one.endsWith(".html") && !seen.has(one))) {
      seen.add(link);
      waiting.push(link);
    }
  }
  return seen;
}

for (const colorScheme of ["light", "dark"]) {
  test(`every file is accessible in ${colorScheme} colours`, async () => {
    await watched(browser, { colorScheme }, async (page) => {
      const seen = await everyPage(page, async (name) => {
        const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        assert.equal(background, colorScheme === "dark" ? "rgb(20, 23, 26)" : "rgb(255, 255, 255)");
        await accessible(page, name);
      });
      assert.ok(seen.size > 10, `${seen.size} pages`);
      await visit(page, "index.html");
      await picture(page, `files-${colorScheme}`);
    });
  });
}

test("steps are folded and copied", async () => {
  await watched(browser, {}, async (page) => {
    await visit(page, "index.html");
    await page.getByRole("link", { name: SCENE.name }).click();
    await page.getByRole("link", { name: "Raw steps" }).click();
    const steps = page.locator("details.step");
    await steps.first().waitFor();
    const unfolded = page.locator("details.step[open]");
    await page.waitForLoadState();
    const count = await steps.count();
    assert.equal(await unfolded.count(), 0);
    await page.getByRole("button", { name: "Open all" }).click();
    await found(unfolded, count);
    const copier = steps.first().locator(".role button").first();
    await copier.click();
    await page.waitForFunction(() => /Copied|Selected/.test(document.querySelector(".step .role button").textContent));
    await page.getByRole("button", { name: "Fold all" }).click();
    await found(unfolded, 0);
    await page.locator("svg.timeline a").last().click({ force: true });
    await page.waitForURL(new RegExp(`#step-${count - 1}$`));
    await found(page.locator(`#step-${count - 1}[open]`), 1);
    await found(unfolded, 1);
    await page.getByRole("navigation", { name: "Forms" }).getByRole("link", { name: "Conversation" }).click();
    await page.waitForURL((url) => !url.pathname.includes("raw"));
    await page.waitForLoadState();
    const calls = page.locator(".call");
    const all = await calls.count();
    await page.getByRole("navigation", { name: "Steps" }).getByRole("link", { name: "failed" }).click();
    await page.waitForURL(/only-errors/);
    await page.waitForLoadState();
    const failed = await calls.count();
    assert.ok(failed > 0 && failed <= all, `${failed} of ${all} calls failed`);
    assert.equal(await calls.filter({ has: page.locator(".bad") }).count(), failed);
  });
});

test("files are read without JavaScript", async () => {
  await watched(browser, { javaScriptEnabled: false }, async (page) => {
    await visit(page, "index.html");
    await page.getByRole("link", { name: SCENE.name }).click();
    await page.getByRole("link", { name: "Raw steps" }).click();
    const step = page.locator("details.step").first();
    await step.waitFor();
    assert.ok(!(await step.locator("pre").first().isVisible()));
    await step.locator("summary").click();
    await step.locator("pre").first().waitFor();
    await page.getByRole("link", { name: "Index" }).click();
    await page.waitForURL(/index\.html$/);
    assert.equal(await page.locator("h1").innerText(), "Exported artifacts");
  });
});

test("files fit a telephone", async () => {
  await watched(browser, { viewport: { width: 320, height: 740 }, hasTouch: true }, async (page) => {
    await everyPage(page, async (name) => {
      const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(content <= window, `${name} is ${content} wide in ${window}`);
    });
  });
});

test("hostile text in files is shown and does nothing", async () => {
  await watched(browser, {}, async (page) => {
    let shown = 0;
    await everyPage(page, async (name) => {
      assert.equal(await page.locator("script").count(), 1, name);
      assert.equal(await page.locator("main img, main iframe, main object, main style").count(), 0, name);
      const text = await page.locator("main").evaluate((main) => main.textContent);
      assert.ok(!text.includes("\u202e") && !text.includes("\u001b"), name);
      shown += text.includes("<script>alert(1)</script>") ? 1 : 0;
    });
    assert.ok(shown >= SCENE.hostile.length, `${shown}`);
  });
});
