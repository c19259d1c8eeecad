// What runs here, what waits, and the buttons to decide it. Text from agents is set as text, never as markup.

const ARMING_MILLIS = 700; // A button that appears under a moving finger is not pressed by accident.
const RETRY_MILLIS = 2000;
const KEPT_MAX = 20;

let secret = sessionStorage.getItem("holdpoint-key") ?? "";
const cards = new Map();
let watching = false; // Whether what is not shown is known not to be there.
const byId = (id) => document.getElementById(id);

// The page of one pause, as letters and messages link to it. It shows the same card, and nothing else; opening it decides nothing.
const only = location.pathname.startsWith("/pauses/") ? location.pathname.slice("/pauses/".length) : null;
const onlyPath = `/api/v1/pauses/${encodeURIComponent(only)}`;

// ---- the document ----

function element(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "on") for (const [event, react] of Object.entries(value)) made.addEventListener(event, react);
    else if (name === "class") made.className = value;
    else made[name] = value;
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// Characters that show nothing, or change how others read, stand here as what they are.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]/gu;

function plainly(tag, text, options = {}) {
  const made = element(tag, options);
  let from = 0;
  for (const match of String(text).matchAll(HIDDEN)) {
    made.append(text.slice(from, match.index));
    const code = match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    made.append(element("span", { class: "hidden-character", title: "a character that does not show", textContent: `U+${code}` }));
    from = match.index + match[0].length;
  }
  made.append(String(text).slice(from));
  return made;
}

// JSON as it was sent, only with line breaks: reading it and writing it again would round large numbers.
function indented(text) {
  let [shown, depth, quoted] = ["", 0, false];
  const line = () => "\n" + "  ".repeat(depth);
  for (let at = 0; at < text.length; at += 1) {
    const c = text[at];
    if (quoted) {
      shown += c;
      if (c === "\\") shown += text[(at += 1)] ?? "";
      if (c === '"') quoted = false;
    } else if (c === '"') {
      [shown, quoted] = [shown + c, true];
    } else if ((c === "{" || c === "[") && (text[at + 1] === "}" || text[at + 1] === "]")) {
      shown += c + text[(at += 1)];
    } else if (c === "{" || c === "[") {
      depth += 1;
      shown += c + line();
    } else if (c === "}" || c === "]") {
      depth -= 1;
      shown += line() + c;
    } else {
      shown += c === "," ? c + line() : c === ":" ? ": " : c;
    }
  }
  return shown;
}

function trouble(text) {
  byId("trouble").textContent = text ?? "";
  byId("trouble").hidden = !text;
}

// ---- the server ----

function headers(more = {}) {
  return secret ? { Authorization: `Bearer ${secret}`, ...more } : more;
}

// What a browser says of a lost connection helps nobody.
function lost() {
  throw new Error("The server does not answer.");
}

async function refusal(response) {
  const problem = await response.json().catch(() => ({}));
  if (response.status === 401) byId("key").hidden = false;
  return Object.assign(new Error(problem.detail ?? `the server answered ${response.status}`), { problem });
}

async function read(path) {
  const response = await fetch(path, { headers: headers() }).catch(lost);
  if (!response.ok) throw await refusal(response);
  return response.json();
}

const randomKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

async function send(path, text) {
  const more = { "Content-Type": "application/json", "Idempotency-Key": randomKey() };
  const response = await fetch(path, { method: "POST", headers: headers(more), body: text }).catch(lost);
  if (!response.ok) throw await refusal(response);
  return response.json();
}

// Frames of a stream, one after the other. EventSource cannot send a credential, so the stream is read by hand.
async function* frames(path, last) {
  const more = { Accept: "text/event-stream", ...(last ? { "Last-Event-ID": String(last) } : {}) };
  const response = await fetch(path, { headers: headers(more) }).catch(lost);
  if (!response.ok) throw await refusal(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ; ) {
    const { value, done } = await reader.read().catch(lost);
    if (done) return;
    text += value;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const frame = { event: "message", data: "", id: null };
      for (const line of text.slice(0, end).split("\n")) {
        if (line.startsWith("data: ")) frame.data += line.slice(6);
        if (line.startsWith("event: ")) frame.event = line.slice(7);
        if (line.startsWith("id: ")) frame.id = Number(line.slice(4));
      }
      text = text.slice(end + 2);
      if (frame.data) yield { ...frame, data: JSON.parse(frame.data) };
    }
  }
}

const rest = (millis) => new Promise((done) => setTimeout(done, millis));

// ---- pauses ----

function show(pause) {
  if (only && pause.id !== only) return;
  const settled = pause.status !== "open";
  const known = cards.get(pause.id);
  if (settled) {
    if (known || only) {
      const card = settledCard(pause);
      if (known) known.replaceWith(card);
      else byId("pauses").replaceChildren(card);
      tellOutcome(pause, card.querySelector(".outcome"));
    }
    cards.delete(pause.id);
  } else if (!known) {
    const card = openCard(pause);
    cards.set(pause.id, card);
    byId("pauses").append(card);
    setTimeout(() => card.querySelectorAll("button[data-arms]").forEach((button) => (button.disabled = false)), ARMING_MILLIS);
  } else {
    known.querySelector(".votes").textContent = votes(pause);
  }
  count();
}

function count() {
  byId("count").textContent = cards.size ? `(${cards.size})` : "";
  byId("none").hidden = only || !watching || cards.size > 0 || byId("pauses").children.length > 0;
  const old = [...byId("pauses").querySelectorAll(".settled")];
  old.slice(0, Math.max(0, old.length - KEPT_MAX)).forEach((card) => card.remove());
}

function votes(pause) {
  return pause.approvals_needed > 1 ? `${pause.approvals.length} of ${pause.approvals_needed} approvals` : "";
}

const TITLES = {
  approval: (pause) => `${pause.agent} wants to run ${pause.tool}`,
  question: (pause) => `${pause.agent} asks`,
  confirmation: (pause) => `${pause.agent} wants a confirmation`,
  in_doubt: (pause) => `${pause.tool} of ${pause.agent} may or may not have run`,
};

function openCard(pause) {
  const card = element("article", { class: "card" });
  card.append(
    plainly("h3", TITLES[pause.kind](pause)),
    element("p", { class: "quiet", textContent: [pause.rule && `held by ${pause.rule}`, pause.expires_at && `until ${new Date(pause.expires_at).toLocaleString()}`, `session ${pause.session_id}`].filter(Boolean).join(" · ") }),
    element("p", { class: "quiet votes", textContent: votes(pause) }),
  );
  if (pause.unreadable) {
    card.append(element("p", { class: "reason", textContent: "What is stored of this run cannot be read any more, so nobody can decide it here. The server's log says more." }));
    return card;
  }
  if (pause.kind !== "question" && pause.args_text) card.append(plainly("pre", indented(pause.args_text)));
  if (pause.reason) card.append(plainly("div", pause.reason, { class: "reason" }));
  card.append({ approval, question, confirmation, in_doubt: inDoubt }[pause.kind](pause));
  card.append(element("p", { class: "quiet outcome" }));
  return card;
}

const DECIDED = {
  approve: "approved",
  approve_edited: "approved with changes",
  deny: "denied",
  respond: "answered in the tool's place",
  answer: "answered",
  happened: "it happened",
  run_again: "run again",
  abandon: "left open",
};

function settledCard(pause) {
  const said = pause.decision ? `${DECIDED[pause.decision.type] ?? pause.decision.type} by ${pause.decision.by}` : pause.status;
  return element("article", { class: "card settled" }, plainly("h3", TITLES[pause.kind](pause)),
    plainly("p", said, { class: "quiet" }), element("p", { class: "quiet outcome" }));
}

const OUTCOMES = {
  running: () => "The run goes on.",
  paused: () => "The run waits for a person again.",
  done: (run) => `The run is done: ${run.output}`,
  failed: (run) => `The run failed (${run.end.code}): ${run.end.message}`,
  cancelled: (run) => `The run was cancelled: ${run.end.message}`,
};

// What came of the run that waited for the pause.
async function tellOutcome(pause, line) {
  line.textContent = OUTCOMES.running();
  while (line.isConnected) {
    try {
      const run = await read(`/api/v1/runs/${encodeURIComponent(pause.run_id)}?wait=30`);
      if (run.status === "running") continue;
      return line.replaceWith(plainly("p", OUTCOMES[run.status](run), { class: "quiet outcome" }));
    } catch (error) {
      line.textContent = error.message;
      if (error.problem) return; // The server said no; one that says nothing may come back.
    }
    await rest(RETRY_MILLIS);
  }
}

function button(text, kind, act) {
  return element("button", { class: kind, textContent: text, disabled: true, type: "button", on: { click: act } }, );
}

function armed(made) {
  made.dataset.arms = "yes";
  return made;
}

function decides(pause, text, kind, body) {
  const made = armed(button(text, kind, async () => {
    const card = cards.get(pause.id);
    const buttons = card ? [...card.querySelectorAll("button")] : [];
    buttons.forEach((each) => (each.disabled = true));
    try {
      const { args, ...given } = body();
      const seen = pause.args_sha256 ? { args_sha256: pause.args_sha256 } : {};
      const text = JSON.stringify({ ...given, ...seen });
      const whole = args === undefined ? text : `${text.slice(0, -1)},"args":${args}}`;
      show(await send(`/api/v1/pauses/${encodeURIComponent(pause.id)}/decide`, whole));
      trouble();
    } catch (error) {
      buttons.forEach((each) => (each.disabled = false));
      trouble(error.message);
      const outcome = card?.querySelector(".outcome");
      if (outcome) outcome.textContent = error.message;
      if (error.problem?.status === 409) refresh(pause.id);
    }
  }));
  return made;
}

async function refresh(id) {
  await read(`/api/v1/pauses/${encodeURIComponent(id)}`).then(show).catch(() => {});
}

function approval(pause) {
  const words = element("input", { type: "text", placeholder: "words for the agent, with a denial" });
  const edited = element("textarea", { value: indented(pause.args_text), spellcheck: false });
  const checked = () => {
    JSON.parse(edited.value); // Says where it is not JSON; the text itself is sent, so that numbers stay as written.
    return edited.value;
  };
  const edit = element("details", {}, element("summary", { textContent: "Change the arguments" }), edited,
    element("div", { class: "row" }, decides(pause, "Approve changed", "yes", () => ({ decision: "approve_edited", args: checked() }))));
  return element("div", {},
    element("div", { class: "row" },
      decides(pause, "Approve", "yes", () => ({ decision: "approve" })),
      decides(pause, "Deny", "no", () => (words.value ? { decision: "deny", message: words.value } : { decision: "deny" }))),
    element("div", { class: "row" }, words),
    pause.allowed_decisions.includes("approve_edited") ? edit : null);
}

function confirmation(pause) {
  return element("div", { class: "row" },
    decides(pause, "Go on", "yes", () => ({ decision: "approve" })),
    decides(pause, "Do not", "no", () => ({ decision: "deny" })));
}

function inDoubt(pause) {
  const result = element("input", { type: "text", placeholder: "what came of it, if it happened" });
  return element("div", {}, element("div", { class: "row" }, result),
    element("div", { class: "row" },
      decides(pause, "It happened", "yes", () => ({ decision: "happened", content: result.value || "done" })),
      decides(pause, "Run it again", "", () => ({ decision: "run_again" })),
      decides(pause, "Leave it open", "no", () => ({ decision: "abandon" }))));
}

function question(pause) {
  const fields = (pause.questions ?? []).map((asked, index) => questionField(pause, asked, index));
  return element("div", {}, ...fields.map((field) => field.made),
    element("div", { class: "row" },
      decides(pause, "Answer", "yes", () => ({ decision: "answer", answers: Object.fromEntries(fields.map((field) => [field.text, field.answer()])) })),
      decides(pause, "Do not answer", "no", () => ({ decision: "deny" }))));
}

function questionField(pause, asked, index) {
  const made = element("fieldset", {}, plainly("legend", asked.question));
  const own = element("input", { type: "text", placeholder: "your words" });
  const choices = asked.options.map((option) => {
    const type = asked.multi_select ? "checkbox" : "radio";
    const choice = element("input", { type, name: `${pause.id}-${index}`, value: option.label });
    made.append(element("label", { class: "option" }, choice, " ", plainly("span", option.label),
      option.description ? plainly("span", ` ${option.description}`, { class: "quiet" }) : null));
    return choice;
  });
  if (asked.options.length === 0 || asked.options.some((option) => option.input)) made.append(own);
  const answer = () => {
    const chosen = choices.filter((choice) => choice.checked).map((choice) => choice.value);
    if (own.value) chosen.push(own.value);
    if (chosen.length === 0) throw new Error(`An answer is missing: ${asked.question}`);
    return asked.multi_select ? chosen : chosen[0];
  };
  return { text: asked.question, made, answer };
}

async function followPauses() {
  for (;;) {
    try {
      for await (const { event, data } of frames("/api/v1/pauses/stream")) {
        if (event === "ready") {
          watching = true;
          trouble();
          count();
          // The stream tells what is open; this one may be over.
          if (only) read(onlyPath).then(show).catch((error) => trouble(error.message));
        }
        if (event.startsWith("pause.")) show(data);
      }
    } catch (error) {
      trouble(error.message);
    }
    watching = false;
    await rest(RETRY_MILLIS);
    cards.forEach((card) => card.remove());
    cards.clear();
    count();
  }
}

// ---- agents ----

async function showAgents() {
  const { agents } = await read("/api/v1/agents");
  const made = agents.map((agent) => {
    const words = element("input", { type: "text", value: agent.demo?.message ?? "", placeholder: "what to ask it" });
    const form = element("form", { class: "row", on: { submit: (event) => { event.preventDefault(); talk(agent.name, words.value); } } },
      words, element("button", { class: "yes", textContent: "Start" }));
    return element("article", { class: "card" }, plainly("h3", agent.name), plainly("p", agent.demo?.shows ?? agent.description, { class: "quiet" }), form);
  });
  byId("agents").replaceChildren(...made);
}

async function talk(agent, input) {
  if (!input.trim()) return trouble("Say what to ask the agent.");
  const box = element("article", { class: "card" }, plainly("h3", agent));
  byId("quiet").hidden = true;
  byId("talks").prepend(box);
  try {
    const run = await send("/api/v1/runs", JSON.stringify({ agent_id: agent, input }));
    trouble();
    await followTalk(run, box);
  } catch (error) {
    box.append(plainly("p", error.message, { class: "said" }));
  }
}

async function followTalk(run, box) {
  let [last, speaking, ended] = [0, null, false];
  const say = (who, text) => {
    const line = element("p", { class: "said" }, element("span", { class: "who", textContent: who }), plainly("span", text));
    box.append(line);
    return line;
  };
  const tell = {
    "run.started": (data) => say("you", data.input),
    delta: (data) => {
      if (data.type !== "text") return;
      speaking ??= { line: say("agent", ""), text: "" };
      speaking.text += data.text;
      speaking.line.lastChild.replaceWith(plainly("span", speaking.text));
    },
    "model.replied": (data) => {
      speaking?.line.remove();
      speaking = null;
      if (data.text) say("agent", data.text);
      data.calls.forEach((call) => say("asks for", `${call.tool} ${JSON.stringify(call.args)}`));
    },
    "pause.opened": () => say("stopped", "a person must look: see the open pauses"),
    "pause.decided": (data) => say(data.decision.by, data.decision.type.replace("_", " ")),
    "pause.expired": () => say("expired", "nobody decided in time"),
    "call.answered": (data) => say("tool", data.output),
    "run.finished": (data) => { say("ended", data.status); ended = true; },
  };
  while (!ended) {
    try {
      for await (const { event, data, id } of frames(`/api/v1/sessions/${encodeURIComponent(run.session_id)}/events`, last)) {
        last = id ?? last;
        tell[event]?.(event === "delta" ? data : data.data);
        if (ended) return;
      }
    } catch (error) {
      trouble(error.message);
    }
    await rest(RETRY_MILLIS);
  }
}

// ---- begin ----

function alone() {
  document.title = "holdpoint: one pause";
  byId("which").textContent = "One pause";
  byId("all").hidden = false;
  byId("begun").hidden = byId("try").hidden = true;
}

async function begin() {
  try {
    if (only) show(await read(onlyPath));
    else await showAgents();
    byId("key").hidden = true;
    const { store } = await (await fetch("/readyz")).json();
    byId("store").textContent = store.survives_crash ? `What is decided is kept (${store.name}).` : `Nothing is kept when this server ends (${store.name}).`;
  } catch (error) {
    trouble(error.message);
  }
}

byId("key").addEventListener("submit", (event) => {
  event.preventDefault();
  secret = byId("secret").value.trim();
  sessionStorage.setItem("holdpoint-key", secret);
  begin();
});

if (only) alone();
begin();
followPauses();
