// Limits are what the program and the page have to agree on. The program sends them with the page (index.go).

/** @type {timeline.Limits} */
export const limits = JSON.parse(document.body.dataset.limits ?? "");
