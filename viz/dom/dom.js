// DOM helpers. A setter writes only a changed value, and writes text as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * @typedef {HTMLElementEventMap & WindowEventMap & DocumentEventMap} Events
 * @typedef {string | number | boolean} Value
 * @typedef {{ [name: string]: Value }} Attributes
 */

// $ returns the first element that matches a selector, or null, which its type omits. kind is for the type checker.
/** @template {Element} [T=HTMLElement] @param {string} selector @param {new () => T} [kind] @returns {T} */
export const $ = (selector, kind) => part(document, selector, kind);

/**
 * @template {Element} [T=HTMLElement]
 * @param {ParentNode} el @param {string} selector @param {new () => T} [_kind] @returns {T}
 */
export const part = (el, selector, _kind) => /** @type {T} */ (el.querySelector(selector));

/** @param {ParentNode} el @param {string} selector @returns {HTMLElement[]} */
export const parts = (el, selector) => [...el.querySelectorAll(selector)].map((each) =>
  /** @type {HTMLElement} */ (each));

// when calls act for every event of a type on target: an element, or the first match of a selector.
/**
 * @template {keyof Events} K
 * @param {string | EventTarget} target @param {K} type
 * @param {(event: Events[K] & { target: HTMLElement }) => void} act
 * @param {boolean | AddEventListenerOptions} [options]
 */
export const when = (target, type, act, options) => (typeof target === "string" ? $(target) : target)
  .addEventListener(type, /** @type {EventListener} */ (act), options);

// put sets an attribute, or removes the attribute if value is null.
/** @param {Element} el @param {string} name @param {Value | null} value */
export function put(el, name, value) {
  if (value === null) return el.removeAttribute(name);
  const text = String(value);
  if (el.getAttribute(name) !== text) el.setAttribute(name, text);
}

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

// label sets the tooltip and the accessible name of a part of the drawing that contains a title element.
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

/** @param {string} text */
export const elementOf = (text) => /** @type {HTMLElement} */ (
  new DOMParser().parseFromString(text, "text/html").body.firstElementChild
);

// pool gives parent the wanted number of children, at most 4096. make returns a new child; without it, none is added.
/** @param {Element} parent @param {number} wanted @param {(n: number) => Element} [make] */
export function pool(parent, wanted, make) {
  const n = Math.min(Math.max(0, Math.trunc(wanted) || 0), 4096);
  while (parent.childElementCount > n) parent.lastElementChild?.remove();
  while (make && parent.childElementCount < n) parent.append(make(parent.childElementCount));
  return parent.children;
}

// copied puts a text on the clipboard, and reports success. A page that is neither local nor encrypted may not do so.
/** @param {string} text */
export const copied = async (text) => navigator.clipboard?.writeText(text).then(() => true, () => false) ?? false;

// address sets parameters of the page's address, and removes those without a value.
/** @param {{ [name: string]: string | number | false | null | undefined }} parts */
export function address(parts) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(parts)) {
    if (value) url.searchParams.set(name, String(value));
    else url.searchParams.delete(name);
  }
  if (url.href !== location.href) history.replaceState(null, "", url);
}

// below shows one of the panels below the stage and hides the others; null hides all.
/** @param {Element | null} wanted */
export function below(wanted) {
  for (const each of parts(document, ".below")) each.hidden = each !== wanted;
  for (const each of parts(document, "[data-below]")) {
    put(each, "aria-expanded", String(each.getAttribute("aria-controls") === wanted?.id));
  }
}

// asking returns a function to call in each frame. It starts act every period ms, if the page is visible and act idle.
/** @param {() => Promise<void>} act */
export function asking(act) {
  let [asked, busy] = [-Infinity, false];
  return (/** @type {number} */ now, /** @type {number} */ period) => {
    if (busy || now - asked < period || document.hidden) return false;
    [asked, busy] = [now, true];
    act().catch(() => {}).finally(() => (busy = false));
    return true;
  };
}

// limits are settings that the program and the page share. The program sends them with the page (past.go).
/** @type {timeline.Limits} */
export const limits = JSON.parse(document.body.dataset.limits ?? "null");
