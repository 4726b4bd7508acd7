// Optional conveniences. All texts come from the server; the script only selects and places them.
"use strict";

function ready(work) {
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", work);
  else work();
}

// Examples fill the editor.
function examples() {
  const editor = document.getElementById("sql");
  for (const button of document.querySelectorAll("button.example")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      editor.value = button.dataset.sql;
      for (const name of ["groups", "rows"]) {
        const field = document.getElementById(name);
        field.value = button.dataset[name] || "";
        if (field.value) field.closest("details").open = true;
      }
      editor.focus();
    });
  }
}

// The slider selects among steps computed by the server: cost, expected errors, and odds.
function slider() {
  const range = document.getElementById("slider");
  if (!range) return;
  const field = document.getElementById("epsilon");
  const steps = JSON.parse(range.dataset.steps);
  range.closest(".slider").hidden = false;
  const spend = document.getElementById("spend");

  function show(step) {
    range.setAttribute("aria-valuetext", "ε = " + step.epsilon);
    for (const place of document.querySelectorAll("[data-live]")) {
      const text = step[place.dataset.live];
      if (text !== undefined) place.textContent = text;
    }
    const cells = document.querySelectorAll("[data-margin]");
    cells.forEach((cell, place) => { if (step.margins[place] !== undefined) cell.textContent = step.margins[place]; });
    const strip = document.querySelector("svg.likely");
    if (strip && step.half !== null) {
      for (const dot of strip.querySelectorAll("[data-place]")) {
        const across = 50 + 50 * Number(dot.dataset.place) * step.half / Number(strip.dataset.reach);
        dot.setAttribute("cx", Math.min(98.5, Math.max(1.5, across)) + "%");
      }
    }
    const bar = document.querySelector("svg.budget[data-coming] .coming, .coming-bar .coming");
    if (bar) bar.setAttribute("width", step.share + "%");
    if (spend) spend.textContent = "Run for ε = " + step.epsilon;
  }

  range.addEventListener("input", () => {
    const step = steps[Number(range.value)];
    field.value = step.epsilon;
    show(step);
  });
  field.addEventListener("input", () => {
    const wanted = Number(field.value);
    if (!(wanted > 0)) return;
    let nearest = 0;
    steps.forEach((step, place) => {
      if (Math.abs(Math.log(step.epsilon / wanted)) < Math.abs(Math.log(steps[nearest].epsilon / wanted))) nearest = place;
    });
    range.value = String(nearest);
    if (Number(steps[nearest].epsilon) === wanted) show(steps[nearest]);
    else if (spend) spend.textContent = "Run for ε = " + field.value;
  });
}

// On the set-up page, the slider selects among budgets, each with its sentence from the server.
function meaningSliders() {
  for (const range of document.querySelectorAll("input[data-meanings]")) {
    const meanings = JSON.parse(range.dataset.meanings), field = document.getElementById(range.dataset.field);
    const words = document.getElementById(range.dataset.sentence);
    range.closest(".slider").hidden = false;
    range.addEventListener("input", () => {
      const chosen = meanings[Number(range.value)];
      field.value = chosen.epsilon;
      words.textContent = chosen.sentence;
      range.setAttribute("aria-valuetext", "ε = " + chosen.epsilon);
    });
    field.addEventListener("input", () => {
      const chosen = meanings.findIndex((each) => Number(each.epsilon) === Number(field.value));
      words.textContent = chosen < 0 ? "" : meanings[chosen].sentence;
      if (chosen >= 0) range.value = String(chosen);
    });
  }
}

// The tour goes through its list: each step marks its place on the page, if the page has it now.
function tour() {
  const list = document.getElementById("tour"), start = document.querySelector("button[data-tour]");
  if (!start) return;
  const steps = [...list.querySelectorAll("li")];
  const panel = document.createElement("div"), words = document.createElement("p"), row = document.createElement("p");
  panel.className = "tour-panel";
  panel.setAttribute("role", "dialog");
  panel.setAttribute("aria-label", "Tour");
  row.className = "actions";
  const buttons = ["Back", "Next", "End tour"].map((name) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "small";
    button.textContent = name;
    row.append(button);
    return button;
  });
  words.setAttribute("role", "status");
  panel.append(words, row);
  let at = 0;

  function mark(place) {
    for (const each of document.querySelectorAll(".toured")) each.classList.remove("toured");
    if (!place) return;
    place.classList.add("toured");
    place.scrollIntoView({ block: "center" });
  }
  function show(step) {
    if (step >= steps.length) { end(); return; }
    at = Math.max(0, step);
    words.textContent = (at + 1) + " of " + steps.length + ": " + steps[at].textContent;
    if (at === 0) buttons[1].focus(); // before Back, which may have the focus, is disabled and loses it
    buttons[0].disabled = at === 0;
    mark(document.querySelector(steps[at].dataset.at));
  }
  function end() {
    mark(null);
    panel.remove();
    start.focus();
  }
  start.hidden = false;
  start.addEventListener("click", () => { document.body.append(panel); show(0); });
  buttons[0].addEventListener("click", () => show(at - 1));
  buttons[1].addEventListener("click", () => show(at + 1));
  buttons[2].addEventListener("click", end);
  panel.addEventListener("keydown", (event) => { if (event.key === "Escape") end(); });
}

// A button beside each snippet copies it.
function copyButtons() {
  if (!navigator.clipboard) return;
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      const before = button.textContent;
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = before; }, 1500);
    });
  }
}

// Show only the rows that contain what is typed.
function findRows() {
  for (const field of document.querySelectorAll("input[data-find]")) {
    const place = field.closest(".find"), found = place.querySelector("[data-found]");
    const rows = [...document.getElementById(field.dataset.find).rows];
    place.hidden = false;
    field.addEventListener("input", () => {
      const wanted = field.value.trim().toLowerCase();
      let count = 0;
      for (const row of rows) {
        row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
        if (!row.hidden) count += 1;
      }
      found.textContent = wanted ? count + " of " + rows.length + " rows" : "";
    });
  }
}

// A form is sent only once: a second click would only wait for the same answer.
function sendOnce() {
  for (const form of document.querySelectorAll("form[data-once]")) {
    form.addEventListener("submit", (event) => {
      if (form.dataset.sent) { event.preventDefault(); return; }
      form.dataset.sent = "yes";
      if (event.submitter && event.submitter.dataset.busy) event.submitter.textContent = event.submitter.dataset.busy;
    });
  }
  // a page restored from the back-forward cache can be sent again; its key makes that free
  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-once]")) delete form.dataset.sent;
  });
}

// Ctrl+Enter requests the free estimate.
function shortcuts() {
  const editor = document.getElementById("sql");
  if (!editor) return;
  editor.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      editor.form.requestSubmit(document.getElementById("estimate"));
    }
  });
}

// What scrolls can be scrolled by keyboard.
function scrollers() {
  function mark() {
    for (const place of document.querySelectorAll(".scroll, pre")) {
      if (place.scrollWidth > place.clientWidth + 1 && place.tabIndex !== 0) {
        place.tabIndex = 0;
        place.dataset.wide = "yes";
      } else if (place.dataset.wide && place.scrollWidth <= place.clientWidth + 1) {
        place.removeAttribute("tabindex");
        delete place.dataset.wide;
      }
    }
  }
  window.addEventListener("resize", mark);
  mark();
}

// Single keys: ? lists them, / goes to the query, and g followed by a letter opens a page. Not while typing.
function keys() {
  const list = document.getElementById("keys");
  if (!list) return;
  const pages = {};
  for (const row of list.querySelectorAll("[data-key]")) pages[row.dataset.key] = row.dataset.page;
  const off = document.getElementById("keys-off"), open = document.getElementById("keys-open");
  off.checked = window.localStorage.getItem("hubbub-keys") === "off";
  off.addEventListener("change", () => window.localStorage.setItem("hubbub-keys", off.checked ? "off" : "on"));
  open.hidden = false;
  open.addEventListener("click", () => list.showModal());
  let waiting = false;
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");
    if (off.checked || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const after = waiting;
    waiting = false;
    if (after && pages[event.key]) window.location.assign(pages[event.key]);
    else if (event.key === "g") waiting = true;
    else if (event.key === "?") { if (list.open) list.close(); else list.showModal(); }
    else if (event.key === "/") {
      const place = document.getElementById("sql") || document.querySelector("input[type=search]:not([hidden])");
      if (place) { event.preventDefault(); place.focus(); }
    }
  });
  list.querySelector("button").addEventListener("click", () => list.close());
}

function printButtons() {
  for (const button of document.querySelectorAll("button[data-print]")) {
    button.hidden = false;
    button.addEventListener("click", () => window.print());
  }
}

// Poll a running study every second; reload its page when it has ended.
function watchStudy() {
  const place = document.querySelector("[data-watch]");
  if (!place) return;
  const bar = place.querySelector("progress"), words = place.querySelector("[data-what]");
  async function look() {
    try {
      const answer = await fetch(place.dataset.watch, { credentials: "same-origin" });
      const seen = await answer.json();
      if (seen.state !== "queued" && seen.state !== "running") { window.location.reload(); return; }
      bar.value = seen.done;
      if (seen.what && words.textContent !== seen.what) words.textContent = seen.what;
    } catch { /* the server is busy or gone: try again */ }
    setTimeout(look, 1000);
  }
  setTimeout(look, 500);
}

// Show the file field only if upload is selected.
function toggleUpload() {
  const field = document.querySelector("[data-upload]"), table = document.getElementById("table");
  if (!field || !table) return;
  function show() {
    field.hidden = table.value !== "upload";
    document.getElementById("file").required = !field.hidden;
  }
  table.addEventListener("change", show);
  show();
}

// A screen follows its parameters: send its form as they change, and replace the reading by the server's.
function screens() {
  const form = document.querySelector("form[data-live]");
  if (!form) return;
  // by attribute: a field named dataset or action would hide the property of the form
  const place = form.getAttribute("data-live"), page = form.getAttribute("action");
  let busy = false, wanted = false, timer = 0;

  async function follow() {
    if (busy) { wanted = true; return; }
    busy = true;
    const address = page + "?" + new URLSearchParams(new FormData(form));
    try {
      const answer = await fetch(address, { credentials: "same-origin" });
      const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
      const reading = parsed.getElementById(place);
      if (reading) {
        document.getElementById(place).replaceChildren(...reading.childNodes);
        window.history.replaceState(null, "", address);
      }
    } catch { /* the server is busy or gone: the next change tries again */ }
    busy = false;
    if (wanted) { wanted = false; later(); }
  }
  function later() {
    clearTimeout(timer);
    timer = setTimeout(follow, 120);
  }

  for (const range of form.querySelectorAll("input[data-steps]")) {
    const steps = JSON.parse(range.dataset.steps), field = document.getElementById(range.dataset.field);
    range.hidden = false;
    range.setAttribute("aria-valuetext", field.value);
    range.addEventListener("input", () => {
      field.value = steps[Number(range.value)];
      range.setAttribute("aria-valuetext", field.value);
    });
    field.addEventListener("input", () => {
      const number = Number(field.value);
      let nearest = 0;
      steps.forEach((step, index) => { if (Math.abs(step - number) < Math.abs(steps[nearest] - number)) nearest = index; });
      if (!Number.isNaN(number)) range.value = String(nearest);
    });
  }
  form.addEventListener("input", (event) => {
    // another number of people or values needs another table
    const whole = event.target.dataset.field || event.target.name;
    if (form.elements.table && (whole === "people" || whole === "values")) form.requestSubmit();
    else later();
  });
}

ready(() => { examples(); slider(); meaningSliders(); tour(); copyButtons(); sendOnce(); shortcuts(); printButtons(); watchStudy(); toggleUpload(); screens(); findRows(); scrollers(); keys(); });
