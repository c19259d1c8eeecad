// The description of the API, as a page.

const byId = (id) => document.getElementById(id);

function element(tag, options = {}, ...children) {
  const made = Object.assign(document.createElement(tag), options);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const text = (tag, content, className = "") => element(tag, { textContent: content ?? "", className });

// Words in which names stand between backticks.
function prose(tag, content, className = "") {
  return element(tag, { className }, ...(content ?? "").split("`").map((part, index) => (index % 2 ? text("code", part) : part)));
}

// What a schema is, in a few words; names of shapes lead to them.
function kind(schema) {
  if (!schema) return text("span", "");
  if (schema.$ref) {
    const name = schema.$ref.split("/").pop();
    return element("a", { href: `#shape-${name}`, textContent: name });
  }
  const either = schema.oneOf ?? schema.anyOf;
  if (either) {
    return element("span", {}, ...either.flatMap((one, index) => (index ? [" or ", kind(one)] : [kind(one)])));
  }
  if (schema.allOf) return element("span", {}, ...schema.allOf.flatMap((one, index) => (index ? [" and ", kind(one)] : [kind(one)])));
  if (schema.enum) return text("code", schema.enum.map((value) => JSON.stringify(value)).join(" | "));
  const types = [schema.type ?? "any"].flat();
  if (types.includes("array")) return element("span", {}, "list of ", kind(schema.items), types.includes("null") ? " or null" : "");
  const bounds = [
    schema.format,
    schema.minLength !== undefined || schema.maxLength !== undefined ? `${schema.minLength ?? 0}–${schema.maxLength ?? "…"} characters` : null,
    schema.minimum !== undefined || schema.maximum !== undefined ? `${schema.minimum ?? "…"}–${schema.maximum ?? "…"}` : null,
  ].filter(Boolean);
  return text("span", types.join(" or ") + (bounds.length ? ` (${bounds.join(", ")})` : ""));
}

function rows(heads, lines) {
  if (lines.length === 0) return null;
  const head = element("tr", {}, ...heads.map((name) => text("th", name)));
  return element("table", {}, head, ...lines.map((cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, cell)))));
}

function properties(schema) {
  const parts = schema.allOf ?? [schema];
  const lines = parts.flatMap((part) => Object.entries(part.properties ?? {}).map(([name, value]) => [
    element("span", {}, text("code", name), (part.required ?? []).includes(name) ? "" : text("span", " optional", "quiet")),
    kind(value),
    prose("span", value.description),
  ]));
  return rows(["field", "type", ""], lines);
}

function operation(path, method, described) {
  const parameters = (described.parameters ?? []).map((one) => [text("code", one.name), one.in, kind(one.schema), prose("span", one.description)]);
  const bodies = Object.entries(described.requestBody?.content ?? {}).map(([type, content]) => [text("code", type), kind(content.schema)]);
  const answers = Object.entries(described.responses ?? {}).map(([status, answer]) => [
    text("code", status),
    answer.description ?? "",
    element("span", {}, ...Object.entries(answer.content ?? {}).flatMap(([type, content]) => [text("code", type), " ", kind(content.schema), " "])),
  ]);
  return element("details", { className: "card" },
    element("summary", {}, text("span", method.toUpperCase(), "method"), text("code", path), " ", prose("span", described.summary, "quiet")),
    prose("p", described.description),
    rows(["parameter", "in", "type", ""], parameters),
    rows(["body", "type"], bodies),
    rows(["status", "when", "answer"], answers));
}

async function begin() {
  const api = await (await fetch("/openapi.json")).json();
  byId("about").textContent = `${api.info.description} Version ${api.info.version}.`;
  for (const tag of api.tags ?? []) {
    const section = element("section", {}, text("h2", tag.name), text("p", tag.description, "quiet"));
    for (const [path, item] of Object.entries(api.paths)) {
      for (const [method, described] of Object.entries(item)) {
        if (described.tags?.includes(tag.name)) section.append(operation(path, method, described));
      }
    }
    byId("operations").append(section);
  }
  for (const [name, schema] of Object.entries(api.components?.schemas ?? {})) {
    byId("schemas").append(element("article", { className: "card", id: `shape-${name}` },
      text("h3", name), text("p", schema.description ?? "", "quiet"),
      properties(schema) ?? kind(schema)));
  }
}

begin();
