/** Two-sided, 95 %: Wilson, JASA 22 (1927). */
const Z = 1.959964;

export function wilson(part: number, whole: number): readonly [low: number, high: number] {
  if (whole === 0) return [0, 1];
  const share = part / whole;
  const square = Z * Z;
  const middle = (share + square / (2 * whole)) / (1 + square / whole);
  const half =
    (Z / (1 + square / whole)) * Math.sqrt((share * (1 - share)) / whole + square / (4 * whole * whole));
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}
