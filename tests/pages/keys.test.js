// The page of a server that asks for credentials.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createHash } from "node:crypto";
import { Server, Tab, openBrowser } from "./world.js";

const KEY = "hpk_tests_only_pages";

let browser, server;

before(async () => {
  const sha256 = createHash("sha256").update(KEY).digest("hex");
  const key = { name: "ana", sha256, roles: ["admin"] };
  // JSON is YAML too.
  server = await Server.start(JSON.stringify({ access: { mode: "keys", api_keys: [key] } }));
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await server?.end();
});

test("the page asks for a key, says when it does not hold, and works with one that does", async () => {
  const tab = await Tab.open(browser, server.url);
  const field = tab.page.getByLabel("API key");
  await field.fill("hpk_wrong");
  await tab.page.getByRole("button", { name: "Use it" }).click();
  await tab.page.locator("#trouble:not([hidden])").waitFor();
  assert.equal(await tab.page.locator("#agents .card").count(), 0);
  await tab.picture("key");
  await field.fill(KEY);
  await tab.page.getByRole("button", { name: "Use it" }).click();
  await tab.page.locator("#agents .card").first().waitFor();
  await field.waitFor({ state: "hidden" });
  await tab.page.locator("#trouble[hidden]").waitFor({ state: "attached" });
  tab.forgive(/status of 401/);

  const desk = tab.page.locator("#agents .card", { has: tab.page.getByRole("heading", { name: "refund-desk" }) });
  await desk.getByRole("button", { name: "Start" }).click();
  const card = tab.page.locator("#pauses .card:not(.settled)").first();
  await card.getByRole("button", { name: "Approve", exact: true }).click();
  await tab.page.locator("#pauses .card.settled").getByText("approved by ana").waitFor();
  assert.ok(!(await tab.page.content()).includes(KEY), "the key is not in the page");
  await tab.close();
});
