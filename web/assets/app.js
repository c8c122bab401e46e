// Comfort for pages that work without it: "/" goes to the search, digests can be copied, and a page says
// when what it shows has changed.
"use strict";
addEventListener("keydown", (e) => {
  const field = document.getElementById("search");
  if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || !field || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) return;
  e.preventDefault();
  field.focus();
  field.select();
});

const said = document.getElementById("said");
for (const place of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) break;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "copy";
  button.setAttribute("aria-label", "Copy " + place.dataset.name);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(place.dataset.copy);
    button.textContent = "copied";
    said.textContent = place.dataset.name + " copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });
  place.after(button);
}

const live = document.body.dataset.live;
if (live && window.EventSource) {
  const changed = document.getElementById("changed");
  const events = new EventSource(live);
  const show = () => { changed.hidden = false; };
  for (const kind of ["publish", "attach", "promote", "rollback", "hold-set", "hold-release", "configure", "restrict"]) events.addEventListener(kind, show);
  addEventListener("pagehide", () => events.close());
}
