// The page of one pause, to which letters and messages link.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { Server, Tab, openBrowser } from "./world.js";

let browser, server;

before(async () => (browser = await openBrowser()));
after(() => browser?.close());
beforeEach(async () => (server = await Server.start()));
afterEach(() => server?.end());

async function call(path, body) {
  const options = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(`${server.url}${path}`, options);
  assert.ok(response.ok, `${path} was answered with ${response.status}`);
  return response.json();
}

/** Starts a run that stops; gives back its pause. */
async function pause() {
  const run = await call("/api/v1/runs?wait=30", { agent_id: "refund-desk", input: "Please refund order A-1001" });
  assert.equal(run.pauses.length, 1, JSON.stringify(run));
  return run.pauses[0];
}

/** A page of another site with a link, such as a mailbox. */
async function mailbox(link) {
  const site = createServer((request, response) => {
    if (request.url !== "/") return response.writeHead(204).end();
    response.writeHead(200, { "Content-Type": "text/html" }).end(`<!doctype html><a href="${link}">Open in holdpoint</a>`);
  });
  await new Promise((done) => site.listen(0, "localhost", done));
  return { url: `http://localhost:${site.address().port}/`, close: () => site.closeAllConnections() ?? site.close() };
}

/** Leaving a page breaks off what it still reads from its own server. */
function forgiveOwn(tab) {
  tab.forgive(new RegExp(`^something was asked of ${server.url}/`));
}

test("a link from another site opens one pause, which is decided there and says how it ended", async () => {
  const [asked, other] = [await pause(), await pause()];
  const site = await mailbox(`${server.url}/pauses/${asked.id}`);
  const tab = await Tab.open(browser, site.url);
  await tab.page.getByRole("link", { name: "Open in holdpoint" }).click();

  const cards = tab.page.locator("#pauses .card");
  await cards.first().waitFor();
  await tab.page.getByRole("heading", { name: "One pause" }).waitFor();
  await tab.page.getByText("What is decided is kept").waitFor();
  assert.equal(await cards.count(), 1);
  assert.ok((await cards.first().textContent()).includes(asked.session_id));
  assert.ok(!(await tab.page.content()).includes(other.session_id));
  assert.match(await cards.first().locator("pre").textContent(), /"amount": 120.5/);
  assert.equal(await tab.page.getByRole("heading", { name: "Agents" }).isVisible(), false);
  await tab.picture("one-pause");
  // Opening it decided nothing.
  assert.equal((await call(`/api/v1/pauses/${asked.id}`)).status, "open");

  await cards.first().getByRole("button", { name: "Approve", exact: true }).click();
  const settled = tab.page.locator("#pauses .card.settled");
  await settled.getByText("approved by local").waitFor();
  await settled.getByText("The run is done:").waitFor();
  await tab.picture("one-pause-settled");
  assert.equal((await call(`/api/v1/pauses/${asked.id}`)).status, "decided");
  assert.equal((await call(`/api/v1/pauses/${other.id}`)).status, "open");
  await tab.page.getByRole("link", { name: "All open pauses" }).click();
  await tab.page.locator("#pauses .card").getByText(other.session_id).waitFor();
  forgiveOwn(tab);
  await tab.close();
  site.close();
});

test("the page of a pause that is over says how it ended, and has nothing to press", async () => {
  const asked = await pause();
  await call(`/api/v1/pauses/${asked.id}/decide`, { decision: "deny", message: "not today" });
  const tab = await Tab.open(browser, `${server.url}/pauses/${asked.id}`);
  const settled = tab.page.locator("#pauses .card.settled");
  await settled.getByText("denied by local").waitFor();
  await settled.getByText("The run is done:").waitFor();
  assert.equal(await tab.page.locator("#pauses button").count(), 0);
  await tab.close();
});

test("the page of a pause that is not there says so", async () => {
  const tab = await Tab.open(browser, `${server.url}/pauses/pau_0198c0ffee007000800000000000beef_1`);
  // It is asked for twice: at once, and when the stream of what is open has begun. The page says so after both.
  let [left, twice] = [2, null];
  const answered = new Promise((done) => (twice = done));
  tab.page.on("response", (response) => {
    if (response.url().includes("/api/v1/pauses/pau_") && (left -= 1) === 0) twice();
  });
  await tab.page.reload();
  await answered;
  await tab.page.locator("#trouble:not([hidden])").waitFor();
  assert.equal(await tab.page.locator("#pauses .card").count(), 0);
  tab.forgive(/status of 404/);
  forgiveOwn(tab);
  await tab.close();
});
