"use strict";
// Randomizes answers in the browser. Coins are whole numbers below 2^64 compared with thresholds that were rounded
// towards more noise; all randomness is crypto.getRandomValues.
const survey = JSON.parse(document.getElementById("survey").textContent);

function word() {
  return crypto.getRandomValues(new BigUint64Array(1))[0];
}

function below(threshold) {
  return word() < BigInt(threshold);
}

// uniform on 0, …, bound − 1: words beyond a whole number of periods are drawn again
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
    return flipped.flatMap((ticked, place) => (ticked ? [place] : []));
  }
  const size = question.answers.length;
  const lie = below(question.threshold);
  const moved = 1 + uniform(size - 1);
  return lie ? (truth + moved) % size : truth;
}

function respond(truths) {
  const answers = {};
  survey.questions.forEach((question, place) => { answers[question.name] = randomize(question, truths[place]); });
  return { survey: survey.identity, answers };
}

// one person, one draw: a second try sends the first response again, or the noise would average out
function kept() {
  try { return localStorage.getItem("hubbub survey " + survey.identity); } catch { return null; }
}

function keep(text) {
  try { localStorage.setItem("hubbub survey " + survey.identity, text); } catch { /* a browser that keeps nothing */ }
}

function element(name, text, attributes) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  Object.entries(attributes || {}).forEach(([key, value]) => made.setAttribute(key, value));
  return made;
}

function field(question) {
  const set = element("fieldset");
  set.append(element("legend", question.text), element("small", question.promise));
  const kind = question.boxes ? "checkbox" : "radio";
  question.answers.forEach((answer, place) => {
    const label = element("label");
    const input = element("input", "", { type: kind, name: question.name, value: String(place) });
    if (!question.boxes) input.required = true;
    label.append(input, " " + answer);
    set.append(label);
  });
  return set;
}

function truth(form, question) {
  const inputs = [...form.querySelectorAll("input")].filter((each) => each.name === question.name);
  const ticked = inputs.map((each) => each.checked);
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
  const wrong = tooMany(form);
  if (wrong) {
    show("Tick at most " + wrong.most + ": " + wrong.text, "");
    return;
  }
  const earlier = kept();
  const text = earlier || JSON.stringify(respond(survey.questions.map((question) => truth(form, question))));
  keep(text);
  form.reset();
  if (!survey.to) {
    show("Copy this and hand it in. It is all that is known of your answers.", text);
    return;
  }
  try {
    const answer = await fetch(survey.to, {
      method: "POST", body: text, headers: { "Content-Type": "application/json" },
      credentials: "omit", referrerPolicy: "no-referrer",
    });
    show(answer.ok ? "Sent. Thank you." : "It was not accepted. Try again later.", text);
  } catch {
    show("It could not be sent. Try again later: the same will be sent.", text);
  }
}

const form = document.getElementById("form");
survey.questions.forEach((question) => form.append(field(question)));
form.append(element("button", "Randomize and send", { type: "submit" }));
form.addEventListener("submit", (event) => {
  event.preventDefault();
  send(form);
});
