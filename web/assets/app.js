// Comfort for pages that work without it: "/" goes to the search, digests can be copied, long tables can be filtered, and
// a page says when what it shows has changed, or when it cannot know.
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

for (const table of document.querySelectorAll("table[data-filter]")) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 9) continue;
  const label = document.createElement("label");
  const field = document.createElement("input");
  label.className = "filter";
  label.textContent = table.dataset.filter + " ";
  field.type = "search";
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    said.textContent = rows.filter((row) => !row.hidden).length + " rows";
  });
  label.append(field);
  table.before(label);
}

const live = document.body.dataset.live;
if (live && window.EventSource) {
  const changed = document.getElementById("changed");
  const events = new EventSource(live);
  const show = () => { changed.hidden = false; };
  for (const kind of ["publish", "attach", "promote", "rollback", "hold-set", "hold-release", "configure", "restrict"]) events.addEventListener(kind, show);
  const lost = document.getElementById("lost");
  let waiting = 0;
  events.onerror = () => { waiting ||= setTimeout(() => { lost.hidden = false; }, 5000); };
  events.onopen = () => { clearTimeout(waiting); waiting = 0; lost.hidden = true; };
  addEventListener("pagehide", () => events.close());
}
