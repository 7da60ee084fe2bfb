// What the page holds, compressed: base64 of gzip in elements that are no scripts.

/**
 * @param {string} text
 * @returns {Promise<ArrayBuffer>}
 */
export async function unpacked(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index += 1) bytes[index] = binary.charCodeAt(index);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/** @param {string} id Of the element that holds it. */
export async function unpackedJson(id) {
  const text = document.getElementById(id)?.textContent ?? "";
  return JSON.parse(new TextDecoder().decode(await unpacked(text)));
}
