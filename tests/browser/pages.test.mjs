// What a person does with the pages, in Chromium. tests/it/server/browser.rs starts the server and this.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { BASE, SCENE, accessible, found, launch, open, picture, watched } from "./browser.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

/** Every page, by name. */
const PAGES = {
  runs: "/",
  artifacts: "/artifacts",
  run: `/artifact/${SCENE.run}`,
  conversation: `/artifact/${SCENE.conversation}`,
  "raw-steps": `/artifact/${SCENE.conversation}?raw=true`,
  session: `/artifact/${SCENE.session}`,
  trace: `/artifact/${SCENE.trace}`,
  contract: `/artifact/${SCENE.contract}`,
  pack: `/artifact/${SCENE.pack}`,
  attachment: `/artifact/${SCENE.attachment}`,
  graph: `/artifact/${SCENE.pack}/graph?depth=3`,
  comparison: `/diff?run=${SCENE.conversation}&run=${SCENE.long_conversation}`,
  "comparison-of-several": `/diff?run=${SCENE.conversation}&run=${SCENE.hostile[2]}&run=${SCENE.long_conversation}`,
  prompt: `/prompt/${SCENE.prompt}`,
  search: "/search?q=ticket",
  stats: "/stats",
  journal: "/journal",
};

/** Pages of artifacts with long texts without spaces. */
const LONG = {
  "long-run": `/artifact/${SCENE.long}`,
  "long-graph": `/artifact/${SCENE.long}/graph`,
  "long-prompt": `/prompt/${SCENE.long_prompt}`,
};

for (const colorScheme of ["light", "dark"]) {
  test(`every page is accessible in ${colorScheme} colours`, async () => {
    await watched(browser, { colorScheme }, async (page) => {
      for (const [name, path] of Object.entries(PAGES)) {
        await open(page, path);
        const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        assert.equal(background, colorScheme === "dark" ? "rgb(20, 23, 26)" : "rgb(255, 255, 255)");
        await accessible(page, name);
        await picture(page, `${name}-${colorScheme}`);
      }
    });
  });
}

test("pages of errors are accessible", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  for (const [path, status] of [["/nothing", 404], ["/artifacts?kind=x", 400], [`/artifact/${"ab".repeat(32)}`, 404]]) {
    await open(page, path, status);
    assert.match(await page.locator("h1").innerText(), /Not found|Artifacts/);
    await accessible(page, path);
  }
  await context.close();
});

test("a list is filtered, sorted and paged, and leads to an artifact", async () => {
  await watched(browser, {}, async (page) => {
    await open(page, "/artifacts");
    const first = page.locator("tbody tr");
    assert.equal(await first.count(), 50);
    await page.getByRole("link", { name: "Next page" }).click();
    await page.waitForURL(/after=/);
    const shown = await page.locator("tbody a.hash").first().innerText();
    await page.getByRole("link", { name: "First page" }).click();
    await page.waitForURL((url) => !url.search.includes("after="));
    assert.notEqual(await page.locator("tbody a.hash").first().innerText(), shown);
    const filters = page.locator("form.filters");
    await filters.locator("select[name=kind]").selectOption({ label: "session" });
    await filters.locator("select[name=order]").selectOption({ label: "hash" });
    await filters.getByRole("button", { name: "Filter" }).click();
    await page.waitForURL(/order=core/);
    const hashes = await page.locator("tbody a.hash").allInnerTexts();
    assert.deepEqual(hashes, [...hashes].sort());
    const kinds = new Set(await page.locator("tbody .kind").allInnerTexts());
    assert.deepEqual([...kinds], ["session"]);
    await page.locator("tbody a.hash").first().click();
    await page.waitForURL(/artifact\/sha256/);
    assert.ok((await page.locator("h1").innerText()).includes("session"));
    assert.match(await page.locator(".badge").innerText(), /Verified/);
  });
});

test("the steps of a run are folded, opened and copied", async () => {
  await watched(browser, { permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
    await open(page, `${PAGES.run}?raw=true`);
    const steps = page.locator("details.step");
    const unfolded = page.locator("details.step[open]");
    assert.equal(await steps.count(), SCENE.steps);
    assert.equal(await unfolded.count(), 0);
    await steps.nth(1).locator("summary").click();
    await found(unfolded, 1);
    const copier = steps.nth(1).locator(".role button").first();
    await copier.click();
    await copier.and(page.getByText("Copied")).waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(copied, await steps.nth(1).locator("pre").first().evaluate((pre) => pre.textContent));
    await page.getByRole("button", { name: "Open all" }).click();
    await found(unfolded, SCENE.steps);
    await page.getByRole("button", { name: "Fold all" }).click();
    await found(unfolded, 0);
    await page.locator("svg.timeline a").last().click({ force: true });
    await page.waitForURL(new RegExp(`#step-${SCENE.steps - 1}$`));
    await found(page.locator(`#step-${SCENE.steps - 1}[open]`), 1);
    await found(unfolded, 1);
    await page.getByRole("navigation", { name: "Steps" }).getByRole("link", { name: "failed" }).click();
    await page.waitForURL(/only=errors/);
    await found(steps, SCENE.failed);
  });
});

test("a run is read as a conversation", async () => {
  await watched(browser, { permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
    await open(page, PAGES.conversation);
    const messages = page.locator(".message");
    assert.equal(await messages.count(), SCENE.messages);
    await found(page.locator(".long[open]"), 0);
    await page.locator(".message.system summary").click();
    await found(page.locator(".long[open]"), 1);
    const tool = page.locator(".tool-call");
    const rowOf = (pointer) => tool.locator(`li[data-pointer="${pointer}"]`);
    await rowOf("/city").hover();
    await page.getByRole("button", { name: "Copy value" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "Paris");
    await rowOf("/sky/clear").hover();
    await page.getByRole("button", { name: "Copy pointer" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "/sky/clear");
    await tool.locator(".result .copier").first().click();
    await tool.locator(".result > .copier", { hasText: "Copied" }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), '{"sky":{"clear":true},"temperature":21.50}');
    await page.locator(".message.assistant .permalink").last().click();
    await page.waitForURL(/#step-\d+-\d+$/);
    await found(page.locator(".message:target"), 1);
    await page.getByRole("link", { name: "Raw steps" }).click();
    await page.waitForURL(/raw=true/);
    assert.equal(await page.locator("details.step").count(), 8);
  });
});

test("keys go to messages, errors and calls of tools, and are listed", async () => {
  await watched(browser, {}, async (page) => {
    await open(page, PAGES.conversation);
    await page.keyboard.press("t");
    await found(page.locator(".tool-call:focus"), 1);
    await page.keyboard.press("e");
    await found(page.locator(".message.error:focus"), 1);
    await page.keyboard.press("k");
    await found(page.locator(".message.user:focus"), 1);
    await page.keyboard.press("j");
    await found(page.locator(".message.error:focus"), 1);
    await page.keyboard.press("?");
    await found(page.locator("dialog[open] kbd"), 6);
    await accessible(page, "keys");
    await page.keyboard.press("Escape");
    await found(page.locator("dialog[open]"), 0);
    await page.getByRole("button", { name: "Next error" }).waitFor();
  });
});

test("a long conversation is loaded while it is scrolled", async () => {
  await watched(browser, {}, async (page) => {
    await open(page, `/artifact/${SCENE.long_conversation}`);
    const calls = page.locator(".call");
    assert.equal(await calls.count(), 200);
    // A place behind the calls is reached without loading those in between.
    await page.getByRole("link", { name: "Facts", exact: true }).click();
    await page.waitForURL(/#facts$/);
    await page.waitForFunction(() => {
      const { top } = document.getElementById("facts").getBoundingClientRect();
      return top >= 0 && top < 200;
    });
    assert.equal(await calls.count(), 200);
    await page.mouse.wheel(0, -10_000_000);
    await page.waitForFunction(() => scrollY === 0);
    await page.locator(".call").last().scrollIntoViewIfNeeded();
    await found(calls, 230);
    await calls.getByText("answer 229.").waitFor();
    await found(page.locator("a[rel=next]"), 0);
    const ids = await page.locator("[id]").evaluateAll((all) => all.map((one) => one.id));
    assert.equal(new Set(ids).size, ids.length);
    await calls.last().locator(".permalink").first().click();
    await page.waitForURL(/from=400#step-458/);
    await found(page.locator("#step-458"), 1);
  });
});

test("a conversation is read without JavaScript, page by page", async () => {
  await watched(browser, { javaScriptEnabled: false }, async (page) => {
    await open(page, `/artifact/${SCENE.long_conversation}`);
    // The link moves as the calls above it are laid out.
    await page.getByRole("link", { name: "Next calls" }).press("Enter");
    await page.waitForURL(/from=400/);
    assert.equal(await page.locator(".call").count(), 30);
    await open(page, PAGES.conversation);
    const rule = page.getByText("rule 59", { exact: true });
    assert.ok(!(await rule.isVisible()));
    await page.locator(".message.system summary").click();
    await rule.waitFor();
  });
});

test("a conversation fits a telephone", async () => {
  await watched(browser, { viewport: { width: 320, height: 740 }, hasTouch: true }, async (page) => {
    for (const path of [PAGES.conversation, ...SCENE.hostile.map((core) => `/artifact/${core}`)]) {
      await open(page, path);
      await page.getByRole("button", { name: "Open all" }).click();
      await accessible(page, path);
      const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(content <= window, `${path} is ${content} wide in ${window}`);
      await picture(page, "conversation-telephone");
    }
  });
});

test("words, hashes and tags are found from every page", async () => {
  await watched(browser, {}, async (page) => {
    await open(page, "/stats");
    await page.keyboard.press("/");
    await page.keyboard.type("ticket");
    await page.keyboard.press("Enter");
    await page.waitForURL(/search\?q=ticket/);
    assert.ok((await page.locator("mark").count()) > 0);
    await page.locator("#go").fill(SCENE.run.slice(7, 19));
    await page.keyboard.press("Enter");
    await page.waitForURL(new RegExp(SCENE.run));
    await page.locator("#go").fill("@golden");
    await page.keyboard.press("Enter");
    await page.waitForURL(new RegExp(SCENE.session));
  });
});

test("the theme is switched and stays", async () => {
  await watched(browser, { colorScheme: "light" }, async (page) => {
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await open(page, "/stats");
    const button = page.locator("button.theme");
    await button.click();
    await button.and(page.getByText("Theme: light")).waitFor();
    await button.click();
    await button.and(page.getByText("Theme: dark")).waitFor();
    assert.equal(await background(), "rgb(20, 23, 26)");
    await open(page, "/journal");
    assert.equal(await background(), "rgb(20, 23, 26)");
  });
});

test("everything is reached with the keyboard", async () => {
  await watched(browser, {}, async (page) => {
    await open(page, `${PAGES.run}?raw=true`);
    await page.keyboard.press("Tab");
    await found(page.locator("a:focus", { hasText: "Skip to the content" }), 1);
    await page.keyboard.press("Enter");
    await found(page.locator("#content:focus"), 1);
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await found(page.locator("#step-1[open]"), 1);
    await page.keyboard.press("k");
    await page.keyboard.press("Space");
    await found(page.locator("#step-0[open]"), 1);
  });
});

test("pages fit a telephone", async () => {
  await watched(browser, { viewport: { width: 320, height: 740 }, hasTouch: true }, async (page) => {
    for (const [name, path] of Object.entries({ ...PAGES, ...LONG })) {
      await open(page, path);
      const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(content <= window, `${name} is ${content} wide in ${window}`);
      await picture(page, `${name}-narrow`);
    }
  });
});

test("pages are read without JavaScript", async () => {
  await watched(browser, { javaScriptEnabled: false }, async (page) => {
    for (const [name, path] of Object.entries(PAGES)) {
      await open(page, path);
      assert.ok(await page.locator("h1").isVisible(), name);
    }
    await open(page, `${PAGES.run}?raw=true`);
    const step = page.locator("details.step").first();
    assert.ok(!(await step.locator("pre").first().isVisible()));
    await step.locator("summary").click();
    await step.locator("pre").first().waitFor();
    await page.locator("#go").fill("ticket");
    await page.locator("form.go button").click();
    await page.waitForURL(/search\?q=ticket/);
    assert.ok(await page.locator("mark").first().isVisible());
  });
});

test("hostile text is shown and does nothing", async () => {
  await watched(browser, {}, async (page) => {
    for (const core of SCENE.hostile) {
      for (const path of [`/artifact/${core}`, `/artifact/${core}/graph`]) {
        await open(page, path);
        await accessible(page, path);
        const scripts = await page.locator("script").count();
        assert.equal(scripts, 1, path);
        assert.equal(await page.locator("main img, main iframe, main object").count(), 0);
      }
      await open(page, `/artifact/${core}`);
      const text = await page.locator("main").evaluate((main) => main.textContent);
      assert.ok(text.includes("<script>alert(1)</script>"), core);
      assert.ok(text.includes("\\u{202e}") && !text.includes("\u202e"), core);
      assert.ok(text.includes("\\u{1b}[2J") && !text.includes("\u001b"), core);
      await picture(page, "hostile");
    }
    await open(page, `/search?q=${encodeURIComponent('"><script>alert(1)</script>')}`);
    assert.equal(await page.locator("input[name=q]").last().inputValue(), '"><script>alert(1)</script>');
  });
});

test("the graph leads to its artifacts", async () => {
  await watched(browser, {}, async (page) => {
    await open(page, PAGES.graph);
    const nodes = page.locator("svg.graph .node");
    assert.ok((await nodes.count()) > 2);
    assert.ok((await page.locator("svg.graph .relation").first().textContent()).length > 2);
    await page.locator(`svg.graph a[href="/artifact/${SCENE.session}"]`).click();
    await page.waitForURL(`${BASE}artifact/${SCENE.session}`);
  });
});

test("the runs that are being recorded are read again", () =>
  watched(browser, {}, async (page) => {
    await page.clock.install();
    await open(page, "/");
    const section = '<section class="recordings"><h2>Being recorded</h2></section>';
    await page.route("**/recordings", (route) => route.fulfill({ contentType: "text/html", body: section }));
    await page.clock.runFor(5_000);
    await page.getByRole("heading", { name: "Being recorded" }).waitFor();
  }));

test("the counts of very many runs are loaded after the page", () =>
  watched(browser, {}, async (page) => {
    await page.route("**/?tag=many", async (route) => {
      const response = await route.fetch();
      const link = '<p class="facets"><a class="load" href="/?facets=yes">Count runs</a></p>';
      const text = await response.text();
      await route.fulfill({ response, body: text.replace(/<section class="facets"[^]*?<\/section>/, link) });
    });
    await open(page, "/?tag=many");
    await page.locator("section.facets").getByText("with errors").waitFor();
  }));
