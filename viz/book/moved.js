// A page that has moved redirects to its place in the new page.

import { $ } from "../dom/dom.js";

location.replace($("[data-moved]", HTMLAnchorElement).href + location.hash);
