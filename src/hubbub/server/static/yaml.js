// Colors for hubbub.yaml, and, in the editor, what can be written at the cursor by its schema. All optional.
"use strict";

// Split a line into parts with a kind; comments, keys, quoted texts and numbers have a color.
function yamlParts(line) {
  const parts = [], pattern = /("(?:[^"\\]|\\.)*"|'[^']*')(\s*:(?=\s|$))?|(#.*$)|([A-Za-z_][\w.-]*)(\s*:(?=\s|$))|([+-]?\d[\d.eE+-]*(?![\w.-]))/g;
  let end = 0;
  for (const match of line.matchAll(pattern)) {
    const comment = match[3] !== undefined, before = line[match.index - 1];
    if (comment && before !== undefined && !/\s/.test(before)) continue;
    if (match[6] !== undefined && before !== undefined && /[\w.-]/.test(before)) continue;
    if (match.index > end) parts.push(["", line.slice(end, match.index)]);
    parts.push([comment ? "y-comment" : match[2] || match[4] ? "y-key" : match[1] ? "y-text" : "y-number", match[0]]);
    end = match.index + match[0].length;
    if (comment) break;
  }
  if (end < line.length) parts.push(["", line.slice(end)]);
  return parts;
}

function paintYaml(place, text) {
  const all = document.createDocumentFragment();
  for (const line of text.split("\n")) {
    for (const [kind, words] of yamlParts(line)) {
      const part = document.createElement("span");
      if (kind) part.className = kind;
      part.textContent = words;
      all.append(part);
    }
    all.append("\n");
  }
  place.replaceChildren(all);
}

// The keys around a position: by indentation, and within braces that are open on its line.
function yamlPath(text, position) {
  const lines = text.slice(0, position).split("\n"), last = lines.pop();
  const path = [];
  let indent = last.search(/\S|$/);
  for (const line of lines.reverse()) {
    const match = /^(\s*)("[^"]*"|[^\s#:][^:#]*):(\s|$)/.exec(line);
    if (match && match[1].length < indent) { path.unshift(match[2].trim().replaceAll('"', "")); indent = match[1].length; }
  }
  let inside = last.trimStart();
  for (const match of inside.matchAll(/([\w.-]+):\s*(?=\{)|\{|\}/g)) {
    if (match[1]) path.push(match[1]);
    else if (match[0] === "}") path.pop();
  }
  const word = /[\w-]*$/.exec(last)[0];
  const isKey = /^[\w-]*$/.test(inside) || /[{,]\s*[\w-]*$/.test(inside);
  return { path, word, isKey };
}

function alternatives(node) {
  return node ? [node, ...[...(node.oneOf || []), ...(node.anyOf || [])].flatMap(alternatives)] : [];
}

function schemaAt(schema, path) {
  let nodes = alternatives(schema);
  for (const key of path) {
    nodes = nodes.flatMap((node) => {
      if (node.properties && node.properties[key]) return alternatives(node.properties[key]);
      return typeof node.additionalProperties === "object" ? alternatives(node.additionalProperties) : [];
    });
  }
  return nodes;
}

function yamlEditor(editor) {
  const schema = JSON.parse(editor.dataset.schema), frame = editor.closest(".editor");
  const paint = document.createElement("div");
  paint.className = "paint";
  paint.setAttribute("aria-hidden", "true");
  frame.prepend(paint);
  frame.classList.add("on");
  const panel = document.querySelector("[data-completion]"), about = panel.querySelector("[data-about]");
  const choices = panel.querySelector("[data-choices]");

  function follow() {
    paint.scrollTop = editor.scrollTop;
    paint.scrollLeft = editor.scrollLeft;
  }
  function repaint() {
    paintYaml(paint, editor.value);
    paint.style.height = editor.offsetHeight + "px";
    follow();
  }
  function insert(name, word) {
    editor.focus();
    editor.setRangeText(name + ": ", editor.selectionStart - word.length, editor.selectionStart, "end");
    editor.dispatchEvent(new Event("input", { bubbles: true }));
  }
  function suggest() {
    const { path, word, isKey } = yamlPath(editor.value, editor.selectionStart);
    const nodes = isKey ? schemaAt(schema, path) : [];
    const known = new Map(nodes.flatMap((node) => Object.entries(node.properties || {})));
    const fitting = [...known].filter(([name]) => name.startsWith(word) && name !== word);
    about.textContent = fitting.length ? "Possible in " + (path.join(" › ") || "hubbub.yaml") + " (Ctrl+Space):" : "";
    choices.replaceChildren(...fitting.map(([name, node]) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "small";
      button.textContent = name;
      if (node.description) button.title = node.description;
      button.addEventListener("click", () => insert(name, word));
      return button;
    }));
    panel.hidden = false;
  }
  editor.addEventListener("input", () => { repaint(); suggest(); });
  editor.addEventListener("click", suggest);
  editor.addEventListener("keyup", (event) => { if (event.key.startsWith("Arrow")) suggest(); });
  editor.addEventListener("scroll", follow);
  editor.addEventListener("keydown", (event) => {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      suggest();
      const first = choices.querySelector("button");
      if (first) first.focus();
    }
  });
  panel.addEventListener("keydown", (event) => { if (event.key === "Escape") editor.focus(); });
  new ResizeObserver(repaint).observe(editor);
  repaint();
}

document.addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll("pre[data-yaml]")) paintYaml(place, place.textContent);
  for (const editor of document.querySelectorAll("textarea[data-schema]")) yamlEditor(editor);
});
