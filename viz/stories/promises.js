// Promises: how the ten of them stand. The server checks every record; the page asks how it went, and a click on a
// breach goes to the record that broke a promise. In a lab's working copy it also asks how the lab stood when it was
// last checked, in a terminal.

import { asking, get } from "../lib/api.js";
import { $, make, mark, say, when } from "../lib/dom.js";

const period = 2000; // ms between two questions

export function newPromises(stage) {
  const button = $("#open-promises");
  const panel = $("#promises");
  const lab = $("#lab-state"); // only in a lab's working copy, and if the lab is about one of the ten
  const checked = $("#lab-checked");
  const askLab = asking(async () => {
    const { says, broken } = await get("/viz/lab");
    say(checked, says);
    mark(checked, "broken", broken);
  });
  const lookAtLab = (now) => checked && stage.source && askLab(now, period);
  if (button.hidden) return { draw: lookAtLab };
  const ask = asking(async () => show(await get("/viz/rules")));
  let broken = 0;

  function show(report) {
    let now = 0;
    for (const rule of report.rules) {
      if (rule.count > 0) now++;
      const item = panel.querySelector(`[data-rule="${rule.number}"]`);
      mark(item, "broken", rule.count > 0);
      say(item.querySelector(".seal"), rule.count > 0 ? "▲" : "✓");
      say(item.querySelector(".word"), rule.count > 0 ? `broken ${rule.count}×` : "kept");
      const list = item.querySelector(".breaches");
      const newest = (rule.breaches ?? []).slice(-3);
      const known = [...list.children].map((each) => each.dataset.seq).join();
      if (known !== newest.map((each) => each.seq).join()) list.replaceChildren(...newest.map(breachButton));
    }
    mark(button, "broken", now > 0);
    say(button.querySelector(".seal"), now > 0 ? "▲" : "✓");
    say($("#promises-state"), now > 0 ? `${now} broken` : "10");
    const missed = report.missed > 0 ? `; ${report.missed} came too fast to check` : "";
    say($("#promises-checked"), `${report.checked} records checked, up to ${report.seq}${missed}`);
    if (lab) {
      const count = report.rules.find((rule) => String(rule.number) === lab.dataset.rule).count;
      mark(lab, "broken", count > 0);
      say(lab, count > 0 ? `▲ broken ${count}×` : `✓ kept in ${report.checked} records`);
    }
    if (now > broken) stage.banner.notice(`A promise is broken: ${report.rules.find((rule) => rule.count > 0).text}`);
    broken = now;
  }

  const breachButton = ({ seq, text }) =>
    make("button", { type: "button", title: `To record ${seq}`, data: { seq } }, `${seq}: ${text}`);

  when(panel, "click", (event) => {
    const seq = event.target.closest("[data-seq]")?.dataset.seq;
    if (seq) stage.player.seek(Number(seq));
  });

  return {
    draw(now) {
      if (stage.source) ask(now, period);
      lookAtLab(now);
    },
    keys: [[["g"], "what is guaranteed: the ten promises", () => button.click()]],
  };
}
