"use strict";
// Light and dark: what the system says at first, then what the button says.

// themes listens to both; again paints what is not drawn by the style sheet.
function themes(again) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  element("theme").addEventListener("click", () => {
    const is = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : dark.matches;
    document.documentElement.dataset.theme = is ? "light" : "dark";
    again();
  });
  dark.addEventListener("change", again);
}

// copied puts a command into the clipboard, or shows it where that is not allowed.
async function copied(button, command) {
  const name = button.textContent;
  try {
    await navigator.clipboard.writeText(command);
    button.textContent = "Copied";
  } catch {
    window.prompt("The command:", command);
  }
  setTimeout(() => (button.textContent = name), 1500);
}
