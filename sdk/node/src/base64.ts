/** Decodes only canonical padded base64: with two spellings of one value, a proof could be changed unnoticed. */
export function decodeBase64(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : null;
}

/** A decimal without leading zeros, at most 2^53-1, or null. */
export function parseDecimal(text: string): number | null {
  const value = Number(text);
  return /^(0|[1-9]\d*)$/.test(text) && Number.isSafeInteger(value) ? value : null;
}
