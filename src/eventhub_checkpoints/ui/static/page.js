// Replaces what changes on a page: each element with data-get by what this address answers, at once,
// or every data-every seconds. What is focused and unfolded stays so. Without scripts, pages are
// complete, but do not change.
"use strict";
const notice = document.getElementById("stale");

const selector = (element) => {
  if (element.id) return `#${CSS.escape(element.id)}`;
  if (element.localName === "summary") return `${selector(element.parentElement)} > summary`;
  return `[href="${CSS.escape(element.getAttribute("href") ?? "")}"]`;
};

const isSelected = (part) => {
  const selection = document.getSelection();
  return part.dataset.every && !selection.isCollapsed && part.contains(selection.anchorNode);
};

const replace = (part, text) => {
  const next = document.adoptNode(new DOMParser().parseFromString(text, "text/html").body.firstElementChild);
  for (const fold of next.querySelectorAll("details[id]")) {
    fold.open = document.getElementById(fold.id)?.open ?? fold.open;
  }
  const focused = part.contains(document.activeElement) && selector(document.activeElement);
  part.replaceWith(next);
  if (focused) next.querySelector(focused)?.focus({ preventScroll: true });
  return next;
};

const refresh = async (part) => {
  try {
    const answer = await fetch(part.dataset.get, { headers: { "X-Part": part.id } });
    if (!answer.ok) throw new Error(answer.statusText);
    const text = await answer.text();
    // 204: nothing has changed. What is selected would not be so any more.
    if (answer.status !== 204 && !isSelected(part)) part = replace(part, text);
    notice.hidden = true;
  } catch {
    notice.hidden = false;
  }
  schedule(part);
};

const schedule = (part) => {
  if (!part.dataset.every) return;
  const next = () => (document.hidden ? schedule(part) : refresh(part));
  setTimeout(next, 1000 * part.dataset.every);
};

for (const part of document.querySelectorAll("[data-get]")) part.dataset.every ? schedule(part) : refresh(part);

document.addEventListener("click", async ({ target }) => {
  const button = target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = "Copied";
});
