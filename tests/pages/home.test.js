// The page of a server with its demo agents, as a person uses it.

import assert from "node:assert/strict";
import { after, before, beforeEach, afterEach, test } from "node:test";
import { Server, Tab, openBrowser } from "./world.js";

let browser, server, tab;

before(async () => (browser = await openBrowser()));
after(() => browser?.close());
beforeEach(async () => {
  server = await Server.start();
  tab = await Tab.open(browser, server.url);
});
afterEach(async () => {
  await tab?.context.close();
  await server?.end();
});

const openCards = () => tab.page.locator("#pauses .card:not(.settled)");
const settledCards = () => tab.page.locator("#pauses .card.settled");
const talk = () => tab.page.locator("#talks .card").first();
const press = (name) => openCards().first().getByRole("button", { name, exact: true }).click();

/** Starts an agent with what its card proposes, or with other words, and waits for its card among the pauses. */
async function start(agent, words) {
  const form = tab.page.locator("#agents .card", { has: tab.page.getByRole("heading", { name: agent, exact: true }) });
  if (words !== undefined) await form.getByRole("textbox").fill(words);
  await form.getByRole("button", { name: "Start" }).click();
  await openCards().first().waitFor();
}

/** Waits until the conversation says so. */
async function told(words) {
  await talk().getByText(words).first().waitFor();
}

function nothingWentWrong() {
  assert.deepEqual(tab.troubles, []);
}

/** The pauses are empty, and the conversation is over. */
async function isDone() {
  await told("ended");
  await openCards().first().waitFor({ state: "detached" });
  assert.match(await talk().textContent(), /endeddone$/);
  nothingWentWrong();
}

test("the page shows the demo agents and where things are kept, without an error", async () => {
  await tab.page.getByText("What is decided is kept").waitFor();
  const names = await tab.page.locator("#agents h3").allTextContents();
  assert.deepEqual(names, ["record-keeper", "refund-desk", "slow-transfer", "trip-planner"]);
  await tab.page.getByText("Nothing waits for anybody.").waitFor();
  const icon = await fetch(`${server.url}/favicon.ico`);
  assert.ok(icon.ok, `the icon is answered with ${icon.status}`);
  await tab.picture("home");
  nothingWentWrong();
});

test("a call is shown as it will run, and runs when it is approved", async () => {
  await start("refund-desk");
  const shown = await openCards().first().locator("pre").textContent();
  assert.deepEqual(JSON.parse(shown), { order: "A-1001", amount: 120.5, reason: "arrived broken" });
  await openCards().first().getByText("Money leaves the company").waitFor();
  await tab.picture("approval");
  await press("Approve");
  await told("no money moved");
  await isDone();
  await settledCards().first().getByText("approved by local").waitFor();
  await settledCards().first().getByText("The run is done: Done. The tool says: refund booked").waitFor();
  await tab.picture("approved");
});

test("changed arguments are what runs", async () => {
  await start("refund-desk");
  await openCards().first().getByText("Change the arguments").click();
  const edited = openCards().first().locator("textarea");
  await edited.fill('{"order": "A-1001", "amount": ');
  await press("Approve changed");
  await tab.page.locator("#trouble").getByText(/JSON/).waitFor();
  assert.equal(await openCards().count(), 1, "what cannot be read decides nothing");
  await edited.fill('{"order": "A-1001", "amount": 20.25}');
  await tab.picture("edit");
  await press("Approve changed");
  await told('"amount":20.25');
  await isDone();
});

test("arguments that the tool does not take are refused, and the call goes on waiting", async () => {
  await start("refund-desk");
  await openCards().first().getByText("Change the arguments").click();
  await openCards().first().locator("textarea").fill('{"order": "A-1001", "amount": 100000}');
  await press("Approve changed");
  await tab.page.locator("#trouble").getByText(/amount/).waitFor();
  await tab.picture("refused");
  tab.forgive(/status of 422/);
  await press("Deny");
  await told("I did not refund the order.");
  await isDone();
});

test("a denial takes words along", async () => {
  await start("refund-desk");
  await openCards().first().getByPlaceholder("words for the agent").fill("The lamp is on its way back.");
  await press("Deny");
  await told("I was told: The lamp is on its way back.");
  await isDone();
  await settledCards().first().getByText("denied by local").waitFor();
  await settledCards().first().getByText("The run is done: I did not refund the order.").waitFor();
});

test("questions are answered, and not before all of them are", async () => {
  await start("trip-planner");
  const card = openCards().first();
  await card.getByLabel("The mountains").check();
  await press("Answer");
  await tab.page.locator("#trouble").getByText("An answer is missing: What do you want to do there?").waitFor();
  await card.getByLabel("Walk").check();
  await card.getByLabel("Eat well").check();
  await tab.picture("question");
  await press("Answer");
  await told("Then I plan with your answers:");
  await isDone();
  const said = await talk().getByText("Then I plan with your answers:").textContent();
  assert.ok(["The mountains", "Walk", "Eat well"].every((chosen) => said.includes(chosen)), said);
  assert.ok(!said.includes("The sea") && !said.includes("Read"), said);
});

test("a question is answered in one's own words", async () => {
  await start("trip-planner");
  const card = openCards().first();
  await card.getByPlaceholder("your words").fill("To Łódź");
  await card.getByLabel("Read").check();
  await press("Answer");
  await told("To Łódź");
  await isDone();
});

for (const button of ["Go on", "Do not"]) {
  test(`a confirmation is given with: ${button}`, async () => {
    await start("record-keeper");
    await openCards().first().getByText("Please confirm that I may go on.").waitFor();
    if (button === "Go on") await tab.picture("confirmation");
    await press(button);
    await told("You answered, and I go by it.");
    await isDone();
  });
}

test("a pause outlives the server, and the page that was open finds it again", async () => {
  await start("refund-desk");
  await server.kill();
  await tab.page.locator("#trouble:not([hidden])").waitFor();
  await tab.picture("server-gone");
  await server.begin();
  await tab.page.locator("#trouble[hidden]").waitFor({ state: "attached" });
  await openCards().first().waitFor();
  tab.forgive(/net::ERR_/);
  await press("Approve");
  await told("no money moved");
  await isDone();
});

test("a pause outlives the server and the page", async () => {
  await start("refund-desk");
  await tab.close();
  await server.kill();
  await server.begin();
  tab = await Tab.open(browser, server.url);
  await openCards().first().waitFor();
  assert.match(await openCards().first().locator("pre").textContent(), /"amount": 120.5/);
  await press("Approve");
  await settledCards().first().waitFor();
  nothingWentWrong();
});

test("a call that was running when the server was killed is not repeated: a person says what happened", async () => {
  await start("slow-transfer");
  const session = (await openCards().first().textContent()).match(/session (ses_\w+)/)[1];
  await press("Approve");
  await server.until(session, "call.started");
  await server.kill();
  await server.begin();
  await openCards().first().getByRole("heading", { name: /may or may not have run/ }).waitFor();
  await tab.picture("in-doubt");
  tab.forgive(/net::ERR_/);
  await openCards().first().getByPlaceholder("what came of it").fill("The bank has booked it.");
  await press("It happened");
  await told("Done. I was told: The bank has booked it.");
  await isDone();
});

test("what somebody says is text, and hidden characters are seen", async () => {
  await start("refund-desk", "<img src=x onerror=alert(1)> \u202erefund");
  await told("<img src=x onerror=alert(1)>");
  assert.equal(await tab.page.locator("#talks img").count(), 0);
  assert.equal(await talk().locator(".hidden-character").first().textContent(), "U+202E");
  await tab.picture("hostile");
  nothingWentWrong();
});

test("two tabs see the same, and the second to decide is told who was first", async () => {
  const other = await Tab.open(browser, server.url);
  await start("refund-desk");
  // The other tab's approval is on its way while this one's denial arrives.
  const [sent, arrive] = [gate(), gate()];
  await other.page.route("**/decide", async (route) => {
    sent.open();
    await arrive.opened;
    await route.continue();
  });
  await other.page.getByRole("button", { name: "Approve", exact: true }).click();
  await sent.opened;
  await press("Deny");
  await other.page.locator("#pauses .card.settled").getByText("denied by local").waitFor();
  arrive.open();
  await other.page.locator("#trouble").getByText(/already decided: deny by local/).waitFor();
  await isDone();
  other.forgive(/status of 409/);
  await other.close();
});

function gate() {
  let open;
  const opened = new Promise((done) => (open = done));
  return { open, opened };
}

test("the page fits a telephone", async () => {
  await tab.page.setViewportSize({ width: 390, height: 844 });
  await start("refund-desk");
  const [wide, shown] = await tab.page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
  assert.ok(wide <= shown, `${wide} pixels of page on ${shown} of screen`);
  await tab.picture("telephone");
  nothingWentWrong();
});

test("the page in the dark", async () => {
  const dark = await Tab.open(browser, server.url, { colorScheme: "dark" });
  await dark.page.locator("#agents h3").first().waitFor();
  await dark.picture("dark");
  await dark.close();
});

test("the description of the API lists its operations", async () => {
  const docs = await Tab.open(browser, `${server.url}/docs`);
  await docs.page.getByText("/api/v1/pauses/{id}/decide").first().click();
  await docs.page.getByText("The body is too large.").filter({ visible: true }).first().waitFor();
  await docs.picture("docs");
  await docs.close();
});
