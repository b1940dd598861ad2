// When a request of htmx fails, the page stays as it was: this shows that it is old. It also keeps the
// focus. htmx does that by ids, but then it searches the page for each id of the new part.
"use strict";
const notice = document.getElementById("stale");
let focused = null;
for (const name of ["htmx:sendError", "htmx:responseError"]) {
  document.body.addEventListener(name, () => { notice.hidden = false; });
}
document.body.addEventListener("htmx:beforeSwap", () => {
  focused = document.activeElement.getAttribute("href");
});
document.body.addEventListener("htmx:afterSwap", () => {
  notice.hidden = true;
  if (focused && document.activeElement === document.body) {
    document.querySelector(`main a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }
});
