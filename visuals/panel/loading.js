// The loading line: says how far the engine is with its model, and asks for that by itself.
// It never reports anything to the page: a report would run the page again, even one that is being
// left.

const ASKED_EVERY_MS = 500;

function draw(line, status) {
  const { host, words, bar } = line;
  host.hidden = !status.stage && !status.error;
  words.textContent = status.error
    ? `The default model could not be loaded: ${status.error}`
    : `Loading the model: ${status.stage} …`;
  host.classList.toggle("is-error", Boolean(status.error));
  bar.parentElement.hidden = Boolean(status.error);
  bar.parentElement.setAttribute("aria-valuenow", String(Math.round(100 * (status.ratio ?? 0))));
  bar.style.width = `${100 * (status.ratio ?? 0)}%`;
}

function build(root) {
  const host = document.createElement("div");
  host.className = "line";
  const words = document.createElement("div");
  words.setAttribute("role", "status");
  const track = document.createElement("div");
  track.className = "track";
  track.setAttribute("role", "progressbar");
  track.setAttribute("aria-label", "Loading the model");
  const bar = document.createElement("div");
  bar.className = "bar";
  track.append(bar);
  host.append(words, track);
  root.append(host);
  return { host, words, bar };
}

async function ask(line) {
  try {
    const response = await fetch(new URL("/live/engine", location.origin));
    if (response.ok) return await response.json();
  } catch {
    // The server may be restarting; the next question will tell.
  }
  return line.status;
}

async function follow(line) {
  while (!line.isOver && line.status.stage) {
    await new Promise((resolve) => setTimeout(resolve, ASKED_EVERY_MS));
    if (line.isOver) return;
    line.status = await ask(line);
    if (!line.isOver) draw(line, line.status);
  }
  line.isFollowing = false;
}

export default function (component) {
  const root = component.parentElement;
  const line = (root.__loading ??= build(root));
  line.isOver = false;
  line.status = component.data;
  draw(line, line.status);
  if (!line.isFollowing) {
    line.isFollowing = true;
    follow(line);
  }
  return () => {
    line.isOver = true;
  };
}
