const EMPTY_BYTES = JSON.stringify({ id: '', allowed: true, filler: '' }).length;

/**
 * An answer of as many bytes as gpd's to a decision. No key, no database.
 * @param {string} answerBytes
 * @returns {(body: { principalId: string }) => object}
 */
export function makeDecider(answerBytes) {
  return ({ principalId: id }) => {
    const filler = 'a'.repeat(Math.max(0, Number(answerBytes) - EMPTY_BYTES - id.length));
    return { id, allowed: true, filler };
  };
}
