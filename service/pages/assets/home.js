"use strict";
// Everything shown is built with textContent: names come from people and are never markup.

const NANO = 1e9;
const message = document.getElementById("message");
const list = document.getElementById("datasets");

async function ask(path, key) {
  const reply = await fetch(path, { headers: { Authorization: `Bearer ${key}` } });
  const body = await reply.json();
  if (!reply.ok) throw new Error(body.detail || `${reply.status}`);
  return body;
}

// Lists have pages: all items, the newest first, as many pages as there are.
async function askAll(path, key) {
  const items = [];
  for (let before = ""; before !== null;) {
    const page = await ask(`${path}${path.includes("?") ? "&" : "?"}limit=1000${before}`, key);
    items.push(...page.items);
    before = page.next === null ? null : `&before=${encodeURIComponent(page.next)}`;
  }
  return items;
}

function element(tag, text, ...children) {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

function meter(label, account) {
  const bar = element("progress");
  bar.max = NANO;
  bar.value = Math.min(NANO, account.posted + account.pending);
  const row = element("div", "", element("span", label), bar, element("span", `${(account.remaining / NANO * 100).toFixed(1)} % left`));
  row.className = "meter";
  return row;
}

function releaseTable(releases) {
  const head = element("tr", "", ...["Release", "State", "ε", "Progress"].map((title) => element("th", title)));
  const rows = releases.map((release) => element("tr", "",
    element("td", release.id.slice(0, 8)),
    element("td", release.state),
    element("td", release.price.epsilon.toPrecision(3)),
    element("td", `${release.progress.step} / ${release.progress.steps} ${release.progress.phase}`)));
  return element("table", "", element("thead", "", head), element("tbody", "", ...rows));
}

function warning(text) {
  const said = element("p", `Warning: ${text}`);
  said.className = "warning";
  return said;
}

async function card(dataset, key) {
  const [budget, releases] = await Promise.all([
    ask(`/v1/datasets/${dataset.id}/budget`, key),
    askAll(`/v1/releases?dataset_id=${dataset.id}`, key),
  ]);
  const facts = `${dataset.units.toLocaleString()} units · (ε, δ) = (${budget.epsilon}, ${budget.delta.toPrecision(2)}) · ` +
    `one more release may have ε up to ${budget.largest_next_epsilon.toPrecision(3)}`;
  return element("article", "", element("h2", dataset.name), element("p", facts),
    ...dataset.warnings.map(warning),
    meter("simple", budget.accounts.simple), meter("Rényi", budget.accounts.renyi),
    ...(releases.length ? [releaseTable(releases)] : [element("p", "No release yet.")]));
}

// The key is in this page alone, and no longer than somebody is there.
const FORGOTTEN_AFTER_MS = 30 * 60 * 1000;
let timer = 0, idle = 0, shown = null;

function forget() {
  clearTimeout(timer);
  shown = null;
  document.getElementById("key").value = "";
  list.replaceChildren();
  message.textContent = "The key is forgotten.";
}

function stay() {
  clearTimeout(idle);
  idle = setTimeout(forget, FORGOTTEN_AFTER_MS);
}

async function show(key) {
  try {
    const datasets = await askAll("/v1/datasets", key);
    const cards = await Promise.all(datasets.map((dataset) => card(dataset, key)));
    if (key !== shown) return;
    list.replaceChildren(...cards);
    message.textContent = datasets.length ? "" : "No dataset yet. Upload one with POST /v1/datasets or `imprimatur publish`.";
    timer = setTimeout(show, 2000, key);
  } catch (problem) {
    if (key !== shown) return;
    message.textContent = problem.message;
    list.replaceChildren();
  }
}

document.getElementById("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(timer);
  shown = document.getElementById("key").value.trim();
  show(shown);
});
document.getElementById("forget").addEventListener("click", forget);
addEventListener("pagehide", forget);
for (const sign of ["keydown", "pointerdown", "pointermove"]) addEventListener(sign, stay);
