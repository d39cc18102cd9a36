/** The 97.5 % point of the normal distribution, so 95 % lie between both sides. */
const Z = 1.959964;

/** The 95 % interval of a share seen as `hits` of `n` (Wilson 1927); 0 to 1 without observations. */
export function wilson(hits: number, n: number): { readonly low: number; readonly high: number } {
  if (n === 0) return { low: 0, high: 1 };
  const square = Z * Z;
  const middle = (hits + square / 2) / (n + square);
  const half = (Z / (n + square)) * Math.sqrt((hits * (n - hits)) / n + square / 4);
  return { low: Math.max(0, middle - half), high: Math.min(1, middle + half) };
}
