// Opens the card of a term by pointer, tap and keyboard, within the window; Escape closes it.
// One script of a report, which has no others to import from.

const EDGE = 8; // pixels between a card and the window
let opened = null;

function show(term) {
  hide();
  opened = term;
  term.classList.add("open");
  const card = term.querySelector(".about");
  const spot = term.getBoundingClientRect();
  const { width, height } = card.getBoundingClientRect();
  const isRoomBelow = spot.bottom + height + EDGE <= innerHeight;
  const left = Math.max(EDGE, Math.min(spot.left, document.documentElement.clientWidth - width - EDGE));
  card.style.left = `${left}px`;
  card.style.top = `${isRoomBelow ? spot.bottom : Math.max(EDGE, spot.top - height)}px`;
}

function hide() {
  opened?.classList.remove("open");
  opened = null;
}

const termOf = (event) => event.target.closest?.(".term") ?? null;
for (const name of ["pointerover", "focusin", "click"]) {
  document.addEventListener(name, (event) => {
    const term = termOf(event);
    if (term && term !== opened) show(term);
    else if (!term && name === "click") hide();
  });
}
document.addEventListener("pointerout", ({ relatedTarget }) => {
  const isWithin = relatedTarget instanceof Node && opened?.contains(relatedTarget);
  if (opened && !isWithin && !opened.matches(":focus")) hide();
});
document.addEventListener("focusout", hide);
document.addEventListener("scroll", hide, { capture: true, passive: true });
document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
