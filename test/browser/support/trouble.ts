/** Scripts that put a page where a person's browser may be. */

/** As another script of the site may have left it: not a character fits. */
export const FILL = `(() => {
  for (let size = 2 ** 22, at = 0; size >= 1; at += 1) {
    try { localStorage.setItem('cart-' + at, 'x'.repeat(size)); } catch { size = Math.floor(size / 2); }
  }
  for (let rest = 'x'; rest.length < 32; rest += 'x') {
    try { localStorage.setItem('', rest); } catch { break; }
  }
})()`;

/** As a device whose clock is off has it, for `new Date()` too. */
export const clockAhead = (
  ms: number,
): string => `{ const RealDate = Date; globalThis.Date = class extends RealDate {
  constructor(...given) { if (given.length === 0) super(RealDate.now() + ${ms}); else super(...given); }
  static now() { return RealDate.now() + ${ms}; } }; }`;

/** As Prototype 1.6 and its like have it: a list becomes a text inside JSON, and `Array.from` maps nothing. */
export const OLD_LIBRARY = `Array.prototype.toJSON = function () {
  const out = []; for (let i = 0; i < this.length; i += 1) out.push(JSON.stringify(this[i])); return '[' + out.join(', ') + ']'; };
  String.prototype.toJSON = Number.prototype.toJSON = function () { return String(this); };
  Array.from = (list) => { const all = []; for (let i = 0; i < list.length; i += 1) all.push(list[i]); return all; };`;
