/** Reads answers: at most 4 MiB (of the export of a log 256 MiB), and only strict JSON. */

export const MAX_BODY_BYTES = 4 * 1024 * 1024;
export const MAX_EXPORT_BYTES = 256 * 1024 * 1024;

/** The result for a body that gpd cannot have sent. */
export const MALFORMED = Symbol('malformed');

async function readStream(response: Response, maxBytes: number): Promise<string | typeof MALFORMED> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    const bytes = chunk as Uint8Array;
    size += bytes.length;
    // Leaving the loop cancels the stream, which closes the connection.
    if (size > maxBytes) return MALFORMED;
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString();
}

/** @throws {Error} what the stream throws when the connection breaks */
export async function readText(response: Response, maxBytes: number): Promise<string | typeof MALFORMED> {
  // The client asked for no coding. A coded body could become very large, and not every language can decode it.
  if (!['', 'identity'].includes((response.headers.get('content-encoding') ?? '').trim().toLowerCase())) {
    // Bun begins to decode before it is asked, and cancelling throws what that found.
    await response.body?.cancel().catch(() => {});
    return MALFORMED;
  }
  const declared = response.headers.get('content-length');
  const isSmall = declared !== null && Number(declared) <= MAX_BODY_BYTES;
  return isSmall ? response.text() : readStream(response, maxBytes);
}

export function parseJson(text: string | typeof MALFORMED): unknown {
  if (text === MALFORMED) return MALFORMED;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return MALFORMED;
  }
}

export type JsonRecord = Readonly<Record<string, unknown>>;

export const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
