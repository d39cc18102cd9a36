import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { makeOpener } from './open.mjs';
import { makeWriter } from './rows.mjs';

const IDS_BYTES = 90;

/**
 * What the floor and the Express handler do with a parsed bundle: open, parse, write the rows durably. No validation, no
 * consent, no classification, no lookup, no cookie.
 * @param {readonly string[]} args file of the database, kid, file of the private key, bytes of an answer and of a verdict
 * @returns {Promise<(bundle: { epk: string, iv: string, ct: string }, answer: (body: object) => void) => void>}
 */
export async function makeAcceptor(args) {
  const [file = '', kid = '', keyFile = '', answerBytes = '0', verdictBytes = '0'] = args;
  const open = makeOpener(kid, readFileSync(keyFile));
  const write = await makeWriter(file);
  const verdict = 'v'.repeat(Number(verdictBytes));
  const filler = 'a'.repeat(Math.max(0, Number(answerBytes) - IDS_BYTES));
  let count = 0;
  return (bundle, answer) => {
    const { nonce, signals } = JSON.parse(open(bundle));
    const device = signals.graphics.canvasHash + signals.fonts;
    const durable = createHash('sha256').update(device).digest('base64url');
    const visitorId = durable.slice(0, 22);
    count += 1;
    const requestId = `req_${String(count).padStart(26, '0')}`;
    write({ kid, nonce, durable, visitorId, requestId, now: Date.now(), verdict }, () =>
      answer({ visitorId, requestId, filler }),
    );
  };
}
