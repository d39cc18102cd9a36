import { createServer } from 'node:http';
import sqlite3 from 'sqlite3';
import { serve } from './serve.mjs';

/**
 * The least that a page of the queue takes: one read of its rows by the bare driver, off the index, and as many bytes. No
 * session, no claims, no counts, no template.
 */

const [file = '', kid = '', bytes = '0'] = process.argv.slice(2);
const PAGE = 25;
const QUEUE = "SELECT * FROM contests WHERE kid = ? AND status = 'open' ORDER BY due_at, contest_id LIMIT ?";
const body = 'a'.repeat(Number(bytes));
const headers = { 'content-type': 'text/html', 'content-length': body.length };

const database = new sqlite3.Database(file, sqlite3.OPEN_READONLY, (error) => {
  if (error) throw error;
  const statement = database.prepare(QUEUE);
  const server = createServer((_request, response) => {
    statement.all(kid, PAGE, (/** @type {Error | null} */ failed, /** @type {unknown[]} */ rows) => {
      response.writeHead(!failed && rows.length === PAGE ? 200 : 500, headers);
      response.end(body);
    });
  });
  serve(server);
});
