// Small ways to write to the document only what has changed. Texts go in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * @typedef {HTMLElementEventMap & WindowEventMap & DocumentEventMap} Events
 * @typedef {string | number | boolean} Value
 * @typedef {{ [name: string]: Value }} Attributes
 */

// $ returns the first element that a selector finds: one that the page has. kind is its class, if that matters.
/** @template {Element} [T=HTMLElement] @param {string} selector @param {new () => T} [kind] @returns {T} */
export const $ = (selector, kind) => part(document, selector, kind);

// part does so within an element.
/**
 * @template {Element} [T=HTMLElement]
 * @param {ParentNode} el @param {string} selector @param {new () => T} [_kind] @returns {T}
 */
export const part = (el, selector, _kind) => /** @type {T} */ (el.querySelector(selector));

// parts are all that a selector finds within an element.
/** @param {ParentNode} el @param {string} selector @returns {HTMLElement[]} */
export const parts = (el, selector) => [...el.querySelectorAll(selector)].map((each) =>
  /** @type {HTMLElement} */ (each));

// when calls act at every event of a type on a target: an element, or what a selector finds. What bubbles comes from an
// element.
/**
 * @template {keyof Events} K
 * @param {string | EventTarget} target @param {K} type
 * @param {(event: Events[K] & { target: HTMLElement }) => void} act
 * @param {boolean | AddEventListenerOptions} [options]
 */
export const when = (target, type, act, options) => (typeof target === "string" ? $(target) : target)
  .addEventListener(type, /** @type {EventListener} */ (act), options);

// put sets an attribute, or takes it away (null).
/** @param {Element} el @param {string} name @param {Value | null} value */
export function put(el, name, value) {
  if (value === null) return el.removeAttribute(name);
  const text = String(value);
  if (el.getAttribute(name) !== text) el.setAttribute(name, text);
}

// widen makes a text as wide as its box; 0: as it is.
/** @param {Element} el @param {number} wide */
export const widen = (el, wide) => (wide > 0 ? put(el, "textLength", wide) : el.removeAttribute("textLength"));

/** @param {Element} el @param {Value} words */
export function say(el, words) {
  const [node, text] = [el.firstChild, String(words)];
  if (!node || node.nodeType !== Node.TEXT_NODE || node.nextSibling) el.textContent = text;
  else if (node.nodeValue !== text) node.nodeValue = text;
}

/** @param {Element} el @param {string} name @param {boolean} on */
export function mark(el, name, on) {
  if (el.classList.contains(name) !== on) el.classList.toggle(name, on);
}

// label says what a part of the drawing is to those who point at it or listen: it has a title of its own.
/** @param {Element} el @param {string} text */
export function label(el, text) {
  put(el, "aria-label", text);
  say(part(el, "title"), text);
}

/** @param {string} name @param {Attributes} [attributes] @param {(Node | string)[]} content */
export function svg(name, attributes = {}, ...content) {
  const el = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) el.setAttribute(key, String(value));
  el.append(...content);
  return el;
}

// make returns a new element with properties, data-attributes (data), and texts or elements in it.
/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name @param {{ [name: string]: unknown, data?: Attributes }} [properties]
 * @param {(Node | string)[]} content
 */
export function make(name, { data, ...properties } = {}, ...content) {
  const el = Object.assign(document.createElement(name), properties);
  for (const [key, value] of Object.entries(data ?? {})) el.dataset[key] = String(value);
  el.append(...content);
  return el;
}

// elementOf returns HTML that the program has rendered as an element.
/** @param {string} text */
export const elementOf = (text) => /** @type {HTMLElement} */ (
  new DOMParser().parseFromString(text, "text/html").body.firstElementChild
);

// options makes a select offer exactly these: [value, words], or values. The one that is chosen stays, if it is
// offered.
/** @param {HTMLSelectElement} select @param {(string | [string, string])[]} wanted */
export function options(select, wanted) {
  const rows = wanted.map((each) => [each].flat());
  if ([...select.options].map((o) => o.value).join() === rows.map(([value]) => value).join()) return;
  const chosen = select.value;
  select.replaceChildren(...rows.map(([value, words = value]) => new Option(words, value)));
  if (rows.some(([value]) => value === chosen)) select.value = chosen;
}

// pool makes parent have exactly n children, made by make; as many as can be drawn, whatever n is.
/** @param {Element} parent @param {number} wanted @param {(n: number) => Element} [make] */
export function pool(parent, wanted, make) {
  const n = Math.min(Math.max(0, Math.trunc(wanted) || 0), 4096);
  while (parent.childElementCount > n) parent.lastElementChild?.remove();
  while (make && parent.childElementCount < n) parent.append(make(parent.childElementCount));
  return parent.children;
}

// copied puts a text on the clipboard and returns whether it could: a page that is neither local nor encrypted may not.
/** @param {string} text */
export const copied = async (text) => navigator.clipboard?.writeText(text).then(() => true, () => false) ?? false;

// address writes these parts of the page's address, and leaves out those without a value.
/** @param {{ [name: string]: string | number | false | null | undefined }} parts */
export function address(parts) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(parts)) {
    if (value) url.searchParams.set(name, String(value));
    else url.searchParams.delete(name);
  }
  if (url.href !== location.href) history.replaceState(null, "", url);
}

// below shows one of the panels below the stage, or none (null).
/** @param {Element | null} wanted */
export function below(wanted) {
  for (const each of parts(document, ".below")) each.hidden = each !== wanted;
  for (const each of parts(document, "[data-below]")) {
    put(each, "aria-expanded", String(each.getAttribute("aria-controls") === wanted?.id));
  }
}

// asking returns a function for each frame, which calls act when so many ms have passed, if the page is seen. What
// fails is no news: the banner says already that the program does not answer.
/** @param {() => Promise<void>} act */
export function asking(act) {
  let asked = -Infinity;
  return (/** @type {number} */ now, /** @type {number} */ period) => {
    if (now - asked < period || document.hidden) return;
    asked = now;
    act().catch(() => {});
  };
}
