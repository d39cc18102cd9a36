import { serveJson } from './server.mjs';

/** The floor of a consent check on node:http: reads, parses and answers as many bytes, without a key or a database. */

const EMPTY_BYTES = JSON.stringify({ id: '', allowed: true, filler: '' }).length;
const answerBytes = Number(process.argv[2] ?? '0');

serveJson(({ principalId: id }, answer) => {
  const filler = 'a'.repeat(Math.max(0, answerBytes - EMPTY_BYTES - id.length));
  answer(200, { id, allowed: true, filler });
});
