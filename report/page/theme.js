// The theme: light, dark or the system's; set in the head, so that the page never flashes in another theme.
"use strict";
(() => {
  const KEY = "crossover-theme";
  const CHOICES = ["auto", "light", "dark"];
  const root = document.documentElement;
  root.classList.add("scripted");

  // A browser may block storage for file:// pages; the choice then lasts until the page is closed.
  function remembered(act) {
    try {
      return act(localStorage);
    } catch {
      return null;
    }
  }
  const stored = () => remembered((storage) => storage.getItem(KEY));

  function apply(choice) {
    if (choice === "auto") delete root.dataset.theme;
    else root.dataset.theme = choice;
    document.dispatchEvent(new Event("crossover:theme"));
  }

  const first = CHOICES.includes(stored()) ? stored() : "auto";
  apply(first);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apply(root.dataset.theme ?? "auto"));

  document.addEventListener("DOMContentLoaded", () => {
    const container = document.getElementById("theme");
    const label = document.createElement("label");
    const select = document.createElement("select");
    for (const choice of CHOICES) select.add(new Option(choice, choice, false, choice === first));
    select.addEventListener("change", () => {
      remembered((storage) => storage.setItem(KEY, select.value));
      apply(select.value);
    });
    label.append("theme ", select);
    container.append(label);
  });
})();
