// What the theme hides from a keyboard or a screen reader.
function mend() {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  // A table that is too wide scrolls in its box, also by the arrow keys.
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap")) {
    if (box.scrollWidth > box.clientWidth) box.setAttribute("tabindex", "0");
    else box.removeAttribute("tabindex");
  }
  // The buttons of a block of code are no place to go to.
  for (const buttons of document.querySelectorAll(".md-code__nav")) {
    buttons.setAttribute("role", "none");
  }
}

const observer = new MutationObserver(mend);
addEventListener("resize", mend);
document$.subscribe(() => {
  observer.disconnect();
  observer.observe(document.body, { childList: true, subtree: true });
  mend();
});
