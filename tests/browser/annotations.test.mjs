// What a person does with forms that change tags, labels and notes. tests/it/server/browser.rs starts the server and this.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { BASE, SCENE, accessible, found, launch, picture, watched } from "./browser.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const visit = (page, path) => page.goto(new URL(path, BASE).href);

test("several runs are labeled at once", async () => {
  await watched(browser, {}, async (page) => {
    await visit(page, "/");
    const rows = page.locator("tbody input[name=run]");
    const count = await rows.count();
    for (const row of await rows.all()) await row.check();
    await page.getByRole("button", { name: "Label selected" }).click();
    await page.waitForURL(/annotate\?run=/);
    await accessible(page, "label several");
    await page.getByRole("textbox", { name: "Label" }).fill("batch=7");
    await page.getByRole("textbox", { name: "Label" }).press("Enter");
    await visit(page, "/?label=batch%3D7");
    await found(page.locator("tbody input[name=run]"), count);
  });
});

for (const options of [{ colorScheme: "light" }, { colorScheme: "dark", viewport: { width: 390, height: 800 }, javaScriptEnabled: false }]) {
  test(`an artifact is annotated in ${options.colorScheme} colours`, async () => {
    await watched(browser, options, async (page) => {
      const name = `${options.colorScheme}-tag`;
      await visit(page, `/artifact/${SCENE.artifact}`);
      await page.getByRole("textbox", { name: "Tag" }).fill(name);
      await page.getByRole("button", { name: "Set tag" }).click();
      await found(page.locator("dd .tag", { hasText: `@${name}` }), 1);
      await page.getByRole("textbox", { name: "Label" }).fill("branch=<b>main</b>");
      await page.getByRole("textbox", { name: "Label" }).press("Enter");
      await found(page.locator("dd a.tag", { hasText: "branch=<b>main</b>" }), 1);
      await page.getByRole("textbox", { name: "Note" }).fill("two\nlines");
      await page.getByRole("button", { name: "Set note" }).click();
      await found(page.locator("span.note", { hasText: "two\nlines" }), 1);
      if (options.javaScriptEnabled !== false) {
        await accessible(page, "annotated");
      }
      await picture(page, `annotations-${options.colorScheme}`);
      await page.getByRole("button", { name: `Remove the tag ${name}` }).click();
      await found(page.getByRole("button", { name: `Remove the tag ${name}` }), 0);
      await page.getByRole("button", { name: "Remove the label branch" }).click();
      await page.getByRole("button", { name: "Remove the note" }).click();
      await found(page.getByRole("button", { name: /^Remove/ }), 0);
    });
  });
}

// Browsers report a page of an error on their console, so nothing is watched here.
test("what is not valid stays in its field", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await visit(page, `/artifact/${SCENE.artifact}`);
  await page.getByRole("textbox", { name: "Tag" }).fill("not a tag");
  await page.getByRole("button", { name: "Set tag" }).click();
  await found(page.getByRole("alert"), 1);
  assert.equal(await page.getByRole("textbox", { name: "Tag" }).inputValue(), "not a tag");
  await accessible(page, "not valid");
  await context.close();
});
