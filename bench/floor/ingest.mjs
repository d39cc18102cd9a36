import { createServer } from 'node:http';
import { makeAcceptor } from './accept.mjs';
import { answerJson, readJson, serve } from './serve.mjs';

/**
 * The least that an ingest server on this runtime and this driver can do for a bundle: read, parse, open, parse, write
 * the rows durably, answer as many bytes.
 */

const accept = await makeAcceptor(process.argv.slice(2));

serve(
  createServer((request, response) =>
    readJson(request, (bundle) => accept(bundle, (body) => answerJson(response, 200, body))),
  ),
);
