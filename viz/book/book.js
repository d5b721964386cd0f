// @ts-nocheck
// The book beside the stage: scrolling is the control. The part of the text that is being read selects the moment; the
// mini-stage shows it, and the line that reported it is lit. Buttons do the same for a presenter. Words that mean a
// part of the stage light it. Where it is narrow, the mini-stage is above the text: there the moments are listed until
// a button opens it, and the buttons choose. Some chapters first show their first try, from a recording of its own.

const mini = document.querySelector("#mini");
if (mini) stageBeside(mini);

function stageBeside(mini) {
  const steps = [...mini.querySelectorAll(".steps li")];
  const lines = new Map(
    [...document.querySelectorAll("article .l[data-point]")]
      .map((line) => [line, steps.findIndex((li) => !li.dataset.lab && li.dataset.point === line.dataset.point)])
  );
  const reading = [...lines].filter(([, step]) => step >= 0);
  const text = document.querySelector("article");
  const repair = document.querySelector("#the-repair");
  const tried = steps.filter((li) => li.dataset.lab).length; // so many steps are of the first try
  const answer = text.querySelectorAll("details.answer")[mini.dataset.fold]; // which the first try gives away
  const place = mini.querySelector(".frame");
  const wide = matchMedia("screen and (min-width: 64rem)");
  let [frame, step] = [null, -1]; // frame: once the mini-stage is open
  let held = 0; // until then scrolling does not choose: a button has
  let named = null; // the words that are pointed at, and mean a part of the stage

  function open() {
    frame = document.createElement("iframe");
    frame.title = `Mini-stage: ${mini.querySelector("h2").textContent}`;
    place.classList.add("staged");
    place.append(frame);
    tell();
  }

  // tell shows the step, and the part that is pointed at: both stand in the frame's address (figure.js), which may be
  // written also where a file may not look into another one.
  function tell() {
    if (!frame) return;
    const { seq, frame: address } = steps[step].dataset;
    const { part = "", kind = "" } = named?.dataset ?? {};
    const station = steps[step].querySelector(".station").textContent;
    frame.contentWindow.location.replace(`${address}#${new URLSearchParams({ at: seq, station, part, kind })}`);
  }

  addEventListener("message", ({ source, data }) => {
    if (frame && source === frame.contentWindow) mini.dataset.shown = data.shows;
  });

  // point lights the part of the stage that is meant by the words under the pointer, or else by those that have the
  // focus.
  function point() {
    const words = text.querySelector("[data-part]:hover") ?? text.querySelector("[data-part]:focus-within");
    if (words === named) return;
    named = words;
    tell();
  }

  function choose(n, from = null) {
    const next = Math.min(steps.length - 1, Math.max(0, n));
    light(from ?? lineOf(next));
    if (next === step) return;
    step = next;
    steps.forEach((li, i) => (li.ariaCurrent = i === step ? "step" : null));
    mini.querySelector(".where").textContent = `step ${step + 1} of ${steps.length}`;
    mini.querySelector(".whole").href = steps[step].dataset.whole;
    mini.dataset.step = step + 1;
    const { act } = steps[step].closest("[data-act]").dataset;
    mini.querySelectorAll("[data-act]").forEach((part) => part.toggleAttribute("hidden", part.dataset.act !== act));
    tell();
  }

  const lineOf = (n) => reading.find(([, at]) => at === n)?.[0];

  function light(line) {
    document.querySelectorAll(".l.lit").forEach((other) => other.classList.toggle("lit", other === line));
    line?.classList.add("lit");
  }

  // scrolled chooses the last reported line above the middle of the window, and the first step before there is one;
  // where the text shows hardly any, as much of the steps as has been read of the text.
  function scrolled() {
    if (performance.now() < held || !wide.matches) return;
    const middle = innerHeight * 0.55;
    const [over, { top, bottom }] = [repair?.getBoundingClientRect().top, text.getBoundingClientRect()];
    const share = (from, to, n) => Math.floor(Math.min(0.999, Math.max(0, (middle - from) / (to - from))) * n);
    const told = answer.getBoundingClientRect().bottom;
    if (mini.classList.toggle("asks", tried > 0 && !answer.open && told > 0)) return choose(0);
    if (tried > 0 && over > middle) return choose(share(told, over, tried));
    if (new Set(reading.map(([, at]) => at)).size < 2) return choose(share(top, bottom, steps.length));
    const [line, at] = reading.findLast(([line]) =>
      !line.closest("details:not([open])") && line.getBoundingClientRect().top < middle) ?? [];
    choose(at ?? tried, line);
  }

  function turn(by) {
    held = performance.now() + 900;
    mini.classList.remove("asks");
    choose(step + by);
    // it is above the text: the text would take it out of sight
    if (!wide.matches) return frame ?? open();
    lineOf(step)?.closest("details")?.toggleAttribute("open", true);
    lineOf(step)?.scrollIntoView({
      block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth",
    });
  }

  addEventListener("scroll", scrolled, { passive: true }); // once a frame, before it is drawn
  answer.addEventListener("toggle", scrolled);
  for (const type of ["pointerover", "focusin", "focusout"]) addEventListener(type, point);
  mini.querySelector(".back").addEventListener("click", () => turn(-1));
  mini.querySelector(".on").addEventListener("click", () => turn(1));
  mini.addEventListener("click", (event) => {
    const li = event.target.closest(".steps li");
    if (li) turn(steps.indexOf(li) - step);
  });

  mini.querySelector(".hands").hidden = false;
  choose(wide.matches ? 0 : steps.findIndex((li) => li.classList.contains("key"))); // which is what is drawn
  scrolled();
  const start = () => wide.matches && !frame && open();
  wide.addEventListener("change", start);
  start();
}
