"use strict";
// Settings of htmx that hold a strict Content-Security-Policy: nothing is evaluated, no style is written into the page.
// Every form works without scripts; this only makes parts of pages follow what is typed.
htmx.config.allowEval = false;
htmx.config.includeIndicatorStyles = false;
htmx.config.historyCacheSize = 0; // no page is kept in the browser's storage
htmx.config.selfRequestsOnly = true;
htmx.config.responseHandling = [{ code: "204", swap: false }, { code: "...", swap: true }]; // a refusal is shown where the part would be

document.addEventListener("htmx:configRequest", (event) => {
  const token = document.querySelector('meta[name="csrf-token"]');
  if (token) event.detail.headers["X-CSRF-Token"] = token.content;
});

// A copy of a page that the browser kept for "back" may be of a session that has ended.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

// A page that answers a form is kept by no browser: going back to it, or loading it again, opens the page that the form was on,
// instead of asking whether to send everything once more.
const reloadsAs = document.querySelector('meta[name="reloads-as"]');
if (reloadsAs) history.replaceState(null, "", reloadsAs.content);

// Who fills in a long form is not idle: while something is typed the session is told so, at most once a minute.
let toldAt = Date.now();
addEventListener("input", () => {
  if (Date.now() - toldAt < 60_000 || !document.querySelector('meta[name="csrf-token"]')) return;
  toldAt = Date.now();
  fetch("/session", { redirect: "manual" }).catch(() => {}); // what is sent later says whether the session is there
});

// A slider over powers: from the smallest to the largest ε, beside the field that is sent.
function bindSlider(slider) {
  const field = document.getElementById(slider.dataset.scaleOf);
  const from = Math.log(Number(slider.dataset.from)), to = Math.log(Number(slider.dataset.to));
  const most = Number(slider.max);
  const follow = () => {
    const value = Number(field.value.replace(",", "."));
    if (value > 0) slider.value = String(Math.round((Math.log(value) - from) / (to - from) * most));
  };
  slider.addEventListener("input", () => {
    const chosen = String(Number(Math.exp(from + (to - from) * Number(slider.value) / most).toPrecision(3)));
    field.value = chosen.replace(".", slider.dataset.point); // as the language writes it; either is read
    field.dispatchEvent(new Event("input", { bubbles: true })); // what follows the field follows the slider
  });
  field.addEventListener("input", follow);
  follow();
}

function bind(place) {
  for (const slider of place.querySelectorAll("[data-scale-of]")) bindSlider(slider);
  for (const form of place.querySelectorAll("[data-upload]")) bindUpload(form);
  for (const column of place.querySelectorAll("[data-column]")) bindColumn(column);
  for (const form of place.querySelectorAll("[data-columns]")) bindUnit(form);
  for (const form of place.querySelectorAll("[data-once]")) bindOnce(form);
  for (const form of place.querySelectorAll("[data-progress]")) bindProgress(form);
  for (const needless of place.querySelectorAll("[data-without-scripts]")) needless.hidden = true;
}
addEventListener("DOMContentLoaded", () => bind(document));

// As `percent` of the server writes it.
function inPercent(share) { return `${Math.floor(share * 100)} %`; }

// A file on its way: dropped or chosen, refused here where it is too large, and how far it is.
function bindUpload(form) {
  const place = form.querySelector("[data-drop]"), input = form.querySelector('input[type="file"]');
  const progress = document.getElementById("upload-progress"), reading = document.getElementById("upload-reading");
  const sending = document.getElementById("upload-sending"), percent = document.getElementById("upload-percent");
  for (const kind of ["dragover", "dragleave", "drop"]) {
    place.addEventListener(kind, (event) => { event.preventDefault(); place.classList.toggle("over", kind === "dragover"); });
  }
  place.addEventListener("drop", (event) => { if (event.dataTransfer.files.length) input.files = event.dataTransfer.files; });
  form.addEventListener("htmx:beforeRequest", (event) => {
    const isTooLarge = input.files.length > 0 && input.files[0].size > Number(form.dataset.most);
    if (!isTooLarge) { sending.hidden = false; return; }
    event.preventDefault();
    const said = document.createElement("p");
    said.className = "fault";
    said.setAttribute("role", "alert");
    said.textContent = form.dataset.tooLarge;
    document.getElementById("upload-fault").replaceChildren(said);
  });
  form.addEventListener("htmx:xhr:progress", (event) => {
    if (!event.detail.lengthComputable) return;
    const share = event.detail.loaded / event.detail.total;
    progress.value = share;
    percent.textContent = sending.dataset.sent.replace("{share}", inPercent(share));
    percent.hidden = share >= 1;
    reading.hidden = share < 1;
    if (share >= 1) progress.removeAttribute("value"); // how long the reading takes is not known
  });
  form.addEventListener("htmx:afterRequest", () => { sending.hidden = reading.hidden = true; progress.value = 0; });
}

// Of a column only the fields that belong to what it holds.
function showFor(place, word) {
  for (const each of place.querySelectorAll("[data-shown-for]")) each.hidden = !each.dataset.shownFor.split(" ").includes(word);
}
function bindColumn(column) {
  const use = column.querySelector("[data-use]");
  const buy = column.querySelector("[data-buy]"), read = column.querySelectorAll("[data-domain]");
  const required = column.querySelector("[data-required]"), missing = column.querySelector("[data-missing]");
  const saysMore = () => "hasOwnWords" in column.dataset || required.checked || missing.value !== missing.defaultValue || [...read].some((each) => each.value);
  const follow = () => {
    showFor(column, use.value);
    if (!buy.checked) return;
    for (const each of column.querySelectorAll("[data-not-bought]")) each.hidden = true;
    if (!saysMore()) column.querySelector("[data-tick]").hidden = true; // nothing is written that could be public
  };
  column.addEventListener("input", follow);
  buy.addEventListener("change", () => { // what the draft has read is not declared; it comes back with the choice
    for (const each of read) {
      if (buy.checked && each.value === each.defaultValue && column.classList.contains("is-draft")) each.value = "";
      else if (!buy.checked && !each.value) each.value = each.defaultValue;
    }
    if (buy.checked && column.classList.contains("is-draft")) required.checked = required.checked && !required.defaultChecked;
    else if (!buy.checked) required.checked = required.checked || required.defaultChecked;
    follow();
  });
  follow();
}
function bindUnit(form) {
  const places = form.querySelectorAll('[data-shown-for="yes"], [data-shown-for="no"]');
  const follow = () => { for (const each of places) each.hidden = form.elements.several.value !== each.dataset.shownFor; };
  form.addEventListener("change", follow);
  follow();
}

// A form whose work takes a while: it is sent once, and says that it works.
function bindOnce(form) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) { event.preventDefault(); return; }
    form.dataset.sent = "yes";
    form.querySelector("[data-while-sent]").hidden = false;
  });
}

// What takes a while and tells how far it is: events of progress, and in the last one the page that follows.
function bindProgress(form) {
  form.addEventListener("submit", async (event) => {
    const button = event.submitter;
    if (event.defaultPrevented || !button || button.hasAttribute("formnovalidate")) return; // sent already, or another step
    event.preventDefault();
    const fields = new URLSearchParams(new FormData(form));
    fields.set(button.name, button.value);
    try {
      const reply = await fetch(form.action, { method: "POST", body: fields, headers: { Accept: "text/event-stream, text/html" } });
      if (reply.redirected) location.assign(reply.url);
      else if ((reply.headers.get("Content-Type") || "").startsWith("text/event-stream")) await follow(form, reply.body);
      else showPage(await reply.text());
    } catch {
      form.querySelector("[data-while-sent] [role=status]").textContent = form.dataset.lost;
      form.querySelector("[data-while-sent] progress").hidden = true;
    }
  });
}
async function follow(form, stream) {
  const progress = form.querySelector("[data-while-sent] progress"), status = form.querySelector("[data-while-sent] [role=status]");
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let text = "", isDone = false;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const each of events) {
      const kind = /^event: (.*)$/m.exec(each), data = /^data: (.*)$/m.exec(each);
      if (!kind || !data) continue;
      const document_ = JSON.parse(data[1]);
      if (kind[1] !== "progress") { isDone = true; showPage(document_.html); continue; }
      if (document_.phase === "reading") progress.value = document_.share;
      else progress.removeAttribute("value");
      const said = document_.phase === "reading" ? form.dataset.reading.replace("{share}", inPercent(document_.share)) : form.dataset.storing;
      if (status.textContent !== said) status.textContent = said;
    }
  }
  if (!isDone) throw new Error("the stream has ended early");
}
// The main part of a page that the server sent as a text, in the place of this one, as a form would have shown it. A parsed
// document runs no script.
function showPage(text) {
  const fresh = new DOMParser().parseFromString(text, "text/html"), main = document.adoptNode(fresh.querySelector("main"));
  document.title = fresh.title;
  document.querySelector("main").replaceWith(main);
  htmx.process(main);
  bind(main);
  main.tabIndex = -1;
  main.focus();
  scrollTo(0, 0);
}

// A link that looks like a button is pressed like one, with the space bar, too.
addEventListener("keydown", (event) => {
  if (event.key !== " " || !event.target.matches('a[role="button"]')) return;
  event.preventDefault();
  event.target.click();
});

// Words and lines of charts in the colours and the type of the page, light and dark.
function styleCharts() {
  if (!globalThis.Chart) return;
  const style = getComputedStyle(document.documentElement);
  Chart.defaults.color = style.getPropertyValue("--pico-color").trim();
  Chart.defaults.borderColor = style.getPropertyValue("--pico-muted-border-color").trim();
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
}

// Histograms. Each has its numbers beside it as a table, too.
function drawCharts(place) {
  for (const canvas of place.querySelectorAll("canvas[data-histogram]")) {
    const { labels, counts } = JSON.parse(canvas.dataset.histogram);
    canvas.removeAttribute("data-histogram");
    const colour = getComputedStyle(document.documentElement).getPropertyValue("--imprimatur-left").trim();
    new Chart(canvas, {
      type: "bar",
      data: { labels, datasets: [{ data: counts, backgroundColor: colour }] },
      options: { animation: false, plugins: { legend: { display: false } }, scales: { x: { ticks: { maxRotation: 0, autoSkip: true } } } },
    });
  }
}

// Real rows beside synthetic ones: grey and green, told apart by how light they are, too.
function drawBeside(place) {
  const style = getComputedStyle(document.documentElement);
  const colours = ["--imprimatur-real", "--imprimatur-left"].map((name) => style.getPropertyValue(name).trim());
  for (const canvas of place.querySelectorAll("canvas[data-beside]")) {
    const { labels, series } = JSON.parse(canvas.dataset.beside);
    canvas.removeAttribute("data-beside");
    const datasets = series.map(({ label, counts }, place) => ({ label, data: counts, backgroundColor: colours[place], categoryPercentage: 0.9, barPercentage: 0.95 }));
    const options = { animation: false, plugins: { legend: { position: "bottom", labels: { boxWidth: 12 } } }, scales: { x: { grid: { display: false }, ticks: { maxRotation: 0, autoSkip: true } } } };
    new Chart(canvas, { type: "bar", data: { labels, datasets }, options });
  }
}

// Lines over time, as high on a narrow screen as on a wide one.
function drawLines(place) {
  for (const canvas of place.querySelectorAll("canvas[data-lines]")) {
    const { labels, lines } = JSON.parse(canvas.dataset.lines);
    canvas.removeAttribute("data-lines");
    const style = getComputedStyle(document.documentElement);
    const colours = ["--imprimatur-left", "--imprimatur-spent"].map((name) => style.getPropertyValue(name).trim());
    const datasets = lines.map(({ label, values }, place) => ({ label, data: values, stepped: true, borderColor: colours[place] }));
    const scales = { x: { ticks: { maxRotation: 0, autoSkip: true, autoSkipPadding: 16 } }, y: { min: 0, suggestedMax: 100 } };
    new Chart(canvas, { type: "line", data: { labels, datasets }, options: { animation: false, maintainAspectRatio: false, scales } });
  }
}
document.addEventListener("htmx:afterSettle", (event) => {
  drawCharts(event.target);
  if (event.target.id === "knobs" && event.target.querySelector("[data-must]")) event.target.closest("details").open = true;
});
addEventListener("DOMContentLoaded", () => { styleCharts(); drawCharts(document); drawLines(document); drawBeside(document); });
