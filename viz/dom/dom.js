// @ts-nocheck
// Small ways to write to the document only what has changed. Texts go in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

// $ returns the first element that a selector finds, null if there is none.
export const $ = (selector) => document.querySelector(selector);

// when calls act at every event of a type on a target: an element, or what a selector finds.
export const when = (target, type, act, options) =>
  (typeof target === "string" ? $(target) : target).addEventListener(type, act, options);

// put sets an attribute, or takes it away (null).
export function put(el, name, value) {
  if (value === null) return el.removeAttribute(name);
  const text = String(value);
  if (el.getAttribute(name) !== text) el.setAttribute(name, text);
}

// widen makes a text as wide as its box; 0: as it is.
export const widen = (el, wide) => (wide > 0 ? put(el, "textLength", wide) : el.removeAttribute("textLength"));

export function say(el, text) {
  const node = el.firstChild;
  if (!node || node.nodeType !== Node.TEXT_NODE || node.nextSibling) el.textContent = text;
  else if (node.nodeValue !== text) node.nodeValue = text;
}

export function mark(el, name, on) {
  if (el.classList.contains(name) !== on) el.classList.toggle(name, on);
}

// label says what a part of the drawing is to those who point at it or listen: it has a title of its own.
export function label(el, text) {
  put(el, "aria-label", text);
  say(el.querySelector("title"), text);
}

export function svg(name, attributes = {}, ...content) {
  const el = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) el.setAttribute(key, value);
  el.append(...content);
  return el;
}

// make returns a new element with properties, data-attributes (data), and texts or elements in it.
export function make(name, { data, ...properties } = {}, ...content) {
  const el = Object.assign(document.createElement(name), properties);
  Object.assign(el.dataset, data);
  el.append(...content);
  return el;
}

// options makes a select offer exactly these: [value, words], or values. The one that is chosen stays, if it is
// offered.
export function options(select, wanted) {
  const rows = wanted.map((each) => [each].flat());
  if ([...select.options].map((o) => o.value).join() === rows.map(([value]) => value).join()) return;
  const chosen = select.value;
  select.replaceChildren(...rows.map(([value, words = value]) => new Option(words, value)));
  if (rows.some(([value]) => value === chosen)) select.value = chosen;
}

// pool makes parent have exactly n children, made by make; as many as can be drawn, whatever n is.
export function pool(parent, wanted, make) {
  const n = Math.min(Math.max(0, Math.trunc(wanted) || 0), 4096);
  while (parent.childElementCount > n) parent.lastElementChild.remove();
  while (parent.childElementCount < n) parent.append(make(parent.childElementCount));
  return parent.children;
}

// copied puts a text on the clipboard and returns whether it could: a page that is neither local nor encrypted may not.
export const copied = async (text) => navigator.clipboard?.writeText(text).then(() => true, () => false) ?? false;

// address writes these parts of the page's address, and leaves out those without a value.
export function address(parts) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(parts)) {
    if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
  }
  if (url.href !== location.href) history.replaceState(null, "", url);
}

// below shows one of the panels below the stage, or none (null).
export function below(wanted) {
  for (const each of document.querySelectorAll(".below")) each.hidden = each !== wanted;
  for (const each of document.querySelectorAll("[data-below]")) {
    put(each, "aria-expanded", String(each.getAttribute("aria-controls") === wanted?.id));
  }
}
