import { serveJson } from './server.mjs';

/** The least that node:http does for a check of consent: read, parse, answer as many bytes. No key, no database. */

const EMPTY_BYTES = JSON.stringify({ id: '', allowed: true, filler: '' }).length;
const answerBytes = Number(process.argv[2] ?? '0');

serveJson(({ principalId: id }, answer) => {
  const filler = 'a'.repeat(Math.max(0, answerBytes - EMPTY_BYTES - id.length));
  answer(200, { id, allowed: true, filler });
});
