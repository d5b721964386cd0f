// A page that has moved leads to its place in the other one.

import { $ } from "../dom/dom.js";

location.replace($("[data-moved]", HTMLAnchorElement).href + location.hash);
