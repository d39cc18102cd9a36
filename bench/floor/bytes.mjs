import { createServer } from 'node:http';
import { serve } from './serve.mjs';

/** The least that node:http does for a GET: as many bytes, which are always the same. */

const body = 'a'.repeat(Number(process.argv[2] ?? '0'));
const headers = { 'content-type': 'application/json', 'content-length': body.length };

serve(
  createServer((_request, response) => {
    response.writeHead(200, headers);
    response.end(body);
  }),
);
