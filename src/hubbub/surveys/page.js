"use strict";
// Randomizes answers in the browser. A coin is an integer below 2^64 compared with a threshold that was rounded towards
// more noise; all randomness comes from crypto.getRandomValues.
const survey = JSON.parse(document.getElementById("survey").textContent);

function word() {
  return crypto.getRandomValues(new BigUint64Array(1))[0];
}

function below(threshold) {
  return word() < BigInt(threshold);
}

// uniform on 0, …, bound − 1, by rejection sampling
function uniform(bound) {
  const period = BigInt(bound);
  const last = (1n << 64n) / period * period;
  let drawn = word();
  while (drawn >= last) drawn = word();
  return Number(drawn % period);
}

function randomize(question, truth) {
  if (question.boxes) {
    const flipped = truth.map((ticked) => ticked !== below(question.threshold));
    return flipped.flatMap((ticked, index) => (ticked ? [index] : []));
  }
  const size = question.answers.length;
  const lie = below(question.threshold);
  const shift = 1 + uniform(size - 1);
  return lie ? (truth + shift) % size : truth;
}

function respond(truths) {
  const answers = {};
  survey.questions.forEach((question, index) => { answers[question.name] = randomize(question, truths[index]); });
  return { survey: survey.identity, answers };
}

// randomize once per person: a second attempt sends the first response again, because averaging would remove the noise
function storedResponse() {
  try { return localStorage.getItem("hubbub survey " + survey.identity); } catch { return null; }
}

function storeResponse(text) {
  try { localStorage.setItem("hubbub survey " + survey.identity, text); } catch { /* no local storage */ }
}

function element(name, text, attributes) {
  const node = document.createElement(name);
  if (text) node.textContent = text;
  Object.entries(attributes || {}).forEach(([key, value]) => node.setAttribute(key, value));
  return node;
}

function field(question) {
  const set = element("fieldset");
  set.append(element("legend", question.text), element("small", question.notice));
  const kind = question.boxes ? "checkbox" : "radio";
  question.answers.forEach((answer, index) => {
    const label = element("label");
    const input = element("input", "", { type: kind, name: question.name, value: String(index) });
    if (!question.boxes) input.required = true;
    label.append(input, " " + answer);
    set.append(label);
  });
  return set;
}

function truth(form, question) {
  const inputs = [...form.querySelectorAll("input")].filter((input) => input.name === question.name);
  const ticked = inputs.map((input) => input.checked);
  return question.boxes ? ticked : ticked.indexOf(true);
}

function tooMany(form) {
  return survey.questions.find((question) => question.boxes && question.most !== null
    && truth(form, question).filter(Boolean).length > question.most);
}

function show(state, text) {
  document.getElementById("outcome").hidden = false;
  document.getElementById("state").textContent = state;
  document.getElementById("sent").textContent = text;
}

async function send(form) {
  const invalid = tooMany(form);
  if (invalid) {
    show("Tick at most " + invalid.most + ": " + invalid.text, "");
    return;
  }
  const earlier = storedResponse();
  const text = earlier || JSON.stringify(respond(survey.questions.map((question) => truth(form, question))));
  storeResponse(text);
  form.reset();
  if (!survey.to) {
    show("Copy this response and submit it. It contains only your randomized answers.", text);
    return;
  }
  try {
    const answer = await fetch(survey.to, {
      method: "POST", body: text, headers: { "Content-Type": "application/json" },
      credentials: "omit", referrerPolicy: "no-referrer",
    });
    show(answer.ok ? "Sent. Thank you." : "The server did not accept the response. Try again later.", text);
  } catch {
    show("The response could not be sent. Try again later; the same response will be sent.", text);
  }
}

const form = document.getElementById("form");
survey.questions.forEach((question) => form.append(field(question)));
form.append(element("button", "Randomize and send", { type: "submit" }));
form.addEventListener("submit", (event) => {
  event.preventDefault();
  send(form);
});
