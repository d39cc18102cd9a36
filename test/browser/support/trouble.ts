/** Scripts that put a page where a person's browser may be. */

/** Another script of the site has filled the storage to the last character. */
export const FILL = `(() => {
  for (let size = 2 ** 22, at = 0; size >= 1; at += 1) {
    try { localStorage.setItem('cart-' + at, 'x'.repeat(size)); } catch { size = Math.floor(size / 2); }
  }
  for (let rest = 'x'; rest.length < 32; rest += 'x') {
    try { localStorage.setItem('', rest); } catch { break; }
  }
})()`;

/** A device whose clock is ahead also reports the wrong time to `new Date()`. */
export const clockAhead = (
  ms: number,
): string => `{ const RealDate = Date; globalThis.Date = class extends RealDate {
  constructor(...given) { if (given.length === 0) super(RealDate.now() + ${ms}); else super(...given); }
  static now() { return RealDate.now() + ${ms}; } }; }`;

/**
 * Prototype 1.6 and similar libraries do this: a list becomes a text in JSON, and `Array.from` maps
 * nothing.
 */
export const OLD_LIBRARY = `Array.prototype.toJSON = function () {
  const out = []; for (let i = 0; i < this.length; i += 1) out.push(JSON.stringify(this[i])); return '[' + out.join(', ') + ']'; };
  String.prototype.toJSON = Number.prototype.toJSON = function () { return String(this); };
  Array.from = (list) => { const all = []; for (let i = 0; i < list.length; i += 1) all.push(list[i]); return all; };`;
