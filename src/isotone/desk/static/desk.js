// What the pages do beyond forms: every page works without this file, and no number is computed here.
"use strict";

function later(work, wait) {
  let timer;
  return () => { clearTimeout(timer); timer = setTimeout(work, wait); };
}

// What is typed is kept while one types, and its diagram or its columns are shown at once.
for (const form of document.querySelectorAll("form[data-keep]")) {
  let asked = 0;
  const send = (address) => fetch(address, { method: "POST", body: new URLSearchParams(new FormData(form)) });
  const keep = later(() => send(form.dataset.keep).catch(() => {}), 500);
  const into = document.getElementById(form.dataset.into);
  const look = later(async () => {
    const mine = ++asked;
    const answer = await send(form.dataset.look);
    if (answer.ok && mine === asked) into.innerHTML = await answer.text();
  }, 250);
  form.addEventListener("input", () => { keep(); if (into) look(); });
}

// The error for a budget and the budget for an error, while one types. Both come from the server.
const accuracy = document.getElementById("accuracy-form");
if (accuracy) {
  let asked = 0, last = "error";
  const look = later(async () => {
    const mine = ++asked;
    const typed = new FormData(accuracy);
    typed.set("ask", last);
    const answer = await fetch(accuracy.dataset.look, { method: "POST", body: new URLSearchParams(typed) });
    if (!answer.ok || mine !== asked) return;
    const found = await answer.json();
    const shown = document.getElementById("answer");
    if (found.problems.length) { shown.textContent = found.problems.join(" "); return; }
    document.getElementById("problems")?.remove();
    const other = accuracy.elements[last === "budget" ? "amount" : "error"];
    if (other && other !== document.activeElement) other.value = last === "budget" ? found.amount : found.error;
    shown.innerHTML = found.answer;
    document.getElementById("numbers").innerHTML = found.numbers;
  }, 250);
  accuracy.addEventListener("input", (event) => {
    if (event.target.name === "error") last = "budget";
    else if (event.target.name === "amount") last = "error";
    else if (event.target.name === "earlier") return;
    look();
  });
}

// How far a release is.
const job = document.getElementById("job");
if (job) {
  const ask = async () => {
    try {
      const answer = await fetch(job.dataset.progress);
      if (!answer.ok) return;
      const found = await answer.json();
      if (found.finished) { location.reload(); return; }
      job.querySelector("progress").value = found.fraction;
      for (const item of job.querySelectorAll("[data-stage]")) {
        const words = found.reached.includes(item.dataset.stage) ? "yes" : "not yet";
        const shown = item.querySelector("span");
        if (shown.textContent !== words) shown.textContent = words;
      }
    } catch { return; }
    setTimeout(ask, 400);
  };
  ask();
}

// What is wrong is read first.
const problems = document.getElementById("problems");
if (problems) { problems.tabIndex = -1; problems.focus(); }
