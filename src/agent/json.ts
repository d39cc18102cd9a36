/** A copy that inherits nothing, so that JSON finds no `toJSON` on it: old libraries put one on Array.prototype. */
function bare(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const copy = Object.setPrototypeOf(Array.isArray(value) ? [] : {}, null) as Record<string, unknown>;
  for (const [name, part] of Object.entries(value)) copy[name] = bare(part);
  return copy;
}

/** JSON of plain data, whatever the page has done to the built-in classes. The banner has the same: neither imports the other. */
export const toJson = (value: unknown): string => JSON.stringify(bare(value));
