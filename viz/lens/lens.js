// Lens: who asks a server that is not ours through our port, and what is wrong with it. The program judges; the page
// asks how it stands once a second, and less often while the panel is closed.

import { ask, asking, get, shelf } from "../lib/api.js";
import { $, counted, make, mark, say, when } from "../lib/dom.js";

const period = { open: 1000, closed: 3000 }; // ms between two questions

export function newLens(stage) {
  const button = $("#open-lens");
  const panel = $("#lens");
  if (button.hidden) return {};
  const frame = asking(look);
  let told = 0;
  let trouble = "";

  const form = $("#guest");
  let resource = document.body.dataset.resource;
  let filled = false; // the form shows what is watched

  async function look() {
    const [report, guest] = await Promise.all([get("/viz/lens"), get("/viz/guest")]);
    showGuest(guest);
    show(report);
  }

  // showGuest shows how our own informers on that server are doing, and what the server says of itself.
  function showGuest(guest) {
    const words = guest.watched.map((each) => `${each.resource}: ${each.synced ? each.objects : "not synced"}`);
    say($("#guest-state"), `${words.join(", ")} · from ${guest.server} · ${bytes(guest.memory)} of memory`);
    const troubles = guest.watched.filter((each) => each.trouble)
      .map((each) => sentence(`${each.resource}: ${each.trouble}`));
    const newest = troubles[0] ?? "";
    if (newest !== trouble) stage.banner.notice(newest); // "" takes away what is healed
    trouble = newest;
    if (guest.trouble) troubles.push(sentence(guest.trouble));
    $("#guest-troubles").replaceChildren(...troubles.map((text) => make("li", {}, text)));
    const shown = { ...guest.metrics[""], ...guest.metrics[resource] };
    for (const el of document.querySelectorAll("[data-theirs]")) say(el, shown[el.dataset.theirs] ?? "–");
    if (filled) return;
    filled = true;
    form.elements.resources.value = guest.choice.resources.join(", ");
    for (const name of ["namespace", "labels", "fields"]) form.elements[name].value = guest.choice[name];
  }

  async function choose() {
    const fields = form.elements;
    const choice = { resources: fields.resources.value.split(/[\s,]+/).filter(Boolean) };
    for (const name of ["namespace", "labels", "fields"]) choice[name] = fields[name].value.trim();
    await ask("POST", "/viz/guest", choice);
    filled = false;
  }

  when(form, "submit", (event) => {
    event.preventDefault();
    choose().catch((problem) => stage.banner.notice(problem.message));
  });

  function show(report) {
    const { findings, clients } = report;
    const wrong = findings.length + (trouble ? 1 : 0);
    mark(button, "broken", wrong > 0);
    say($("#lens-state"), wrong > 0 ? `▲ ${wrong}` : clients > 0 ? String(clients) : "");
    const writes = report.writes ? "Writes pass." : "Only reads pass.";
    say($("#lens-seen"), `${counted(clients, "client")}, ${counted(report.requests, "request")}. ${writes}`);
    $("#lens-none").hidden = findings.length > 0;
    $("#lens-findings").replaceChildren(...findings.map(item));
    if (findings.length > told && panel.hidden) stage.banner.notice(findings[0].sentence);
    told = findings.length;
  }

  return {
    draw(now) {
      frame(now, panel.hidden ? period.closed : period.open);
    },
    resource: (name) => (resource = name),
    keys: [[["j"], "through the lens: clients of the server, and findings", () => button.click()]],
  };
}

const sentence = (text) => (text.endsWith("?") ? text : `${text}.`);

function item(finding) {
  const chapter = make("a", { href: shelf.page(`/book/${finding.chapter}`) }, `Chapter ${finding.chapter.slice(0, 2)}`);
  const rest = make("span", { className: "advice" }, ` ${finding.advice} `, chapter);
  if (finding.incident) {
    const href = `https://github.com/${finding.incident.replace("#", "/issues/")}`;
    rest.append(", as in ", make("a", { href, rel: "noreferrer" }, finding.incident));
  }
  return make("li", { data: { finding: finding.id } }, make("span", { className: "finding" }, finding.sentence), rest);
}

const bytes = (n) => (n < 10_000 ? `${n} B` : n < 10_000_000 ? `${Math.round(n / 1000)} kB`
  : `${Math.round(n / 1_000_000)} MB`);
