import { createServer } from 'node:http';
import { makeDecider } from './decide.mjs';
import { answerJson, readJson, serve } from './serve.mjs';

/** The least that node:http does for a JSON question: read, parse, answer as many bytes. No key, no database. */

const decide = makeDecider(process.argv[2] ?? '0');

serve(
  createServer((request, response) => readJson(request, (body) => answerJson(response, 200, decide(body)))),
);
