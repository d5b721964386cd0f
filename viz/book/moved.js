// The page of a former document redirects to the document that now has its text, and to the same heading there.

import { $ } from "../dom/dom.js";

location.replace($("[data-moved]", HTMLAnchorElement).href + location.hash);
