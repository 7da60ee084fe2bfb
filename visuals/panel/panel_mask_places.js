// Where everything is on the attention picture: its square, its cells, and the squares of heads.

const LABEL_CELL = 12; // from this cell size on, rows and columns carry their tokens

// One square with axes, in a canvas of this size.
function squarePlace(width, height, cells) {
  const isLabelled = Math.min((width - 74) / cells, (height - 62) / cells) >= LABEL_CELL;
  const left = isLabelled ? 74 : 56;
  const top = isLabelled ? 62 : 24;
  const side = Math.max(40, Math.min(width - left - 4, height - top - 4));
  return { cells, left, top, side, cell: side / cells, isLabelled };
}

// Where each head's square lies, and the frames around those that share a K/V head.
function headPlaces(heads, shared, { width, height }) {
  const group = heads % shared === 0 ? heads / shared : 1;
  const count = heads / group;
  const gap = group > 1 ? 4 : 2;
  let best = { side: 0, across: 1 };
  for (let across = 1; across <= count; across += 1) {
    const rows = Math.ceil(count / across);
    const side = Math.min((width - across * (gap * 2)) / (across * group) - 2, height / rows - gap * 2 - 2);
    if (side > best.side) best = { side: Math.floor(side), across };
  }
  const side = Math.max(6, best.side);
  const wide = group * (side + 2) + gap;
  const tall = side + 2 + gap;
  const places = { heads: [], groups: [] };
  for (let head = 0; head < heads; head += 1) {
    const one = Math.floor(head / group);
    const x = (one % best.across) * (wide + gap) + gap / 2 + 1;
    const y = Math.floor(one / best.across) * (tall + gap) + gap / 2 + 1;
    if (head % group === 0 && group > 1) places.groups.push({ x: x - gap / 2 - 1, y: y - gap / 2 - 1, width: wide, height: tall });
    places.heads.push({ x: x + (head % group) * (side + 2), y, side });
  }
  return places;
}

// Plane, query and key under a point of the one square, or of one of the heads'; null beside them.
function spotAt(x, y, { place, heads, cells }) {
  const inside = (one) => x >= one.x && y >= one.y && x < one.x + one.side && y < one.y + one.side;
  const plane = heads ? heads.findIndex(inside) : 0;
  if (plane < 0 || (!heads && !place)) return null;
  const one = heads?.[plane];
  const { left, top, cell } = one ? { left: one.x, top: one.y, cell: one.side / cells } : place;
  const query = Math.floor((y - top) / cell);
  const key = Math.floor((x - left) / cell);
  return query < 0 || key < 0 ? null : { plane, query, key };
}

// Where a cell is, the other way round.
function cellAt({ plane, query, key }, { place, heads, cells }) {
  const one = heads?.[plane];
  const { left, top, cell } = one ? { left: one.x, top: one.y, cell: one.side / cells } : place;
  return { x: left + (key + 0.5) * cell, y: top + (query + 0.5) * cell };
}
