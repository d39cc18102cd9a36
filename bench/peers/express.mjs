import { createServer } from 'node:http';
import express from 'express';
import { makeAcceptor } from '../floor/accept.mjs';
import { makeDecider } from '../floor/decide.mjs';
import { serve } from '../floor/serve.mjs';

/** An Express 5 application as its documents show it, whose handlers do what the floor does. */

const [route = '', ...args] = process.argv.slice(2);
const app = express();
app.use(express.json({ limit: 32_768 }));

if (route === 'ingest') {
  const accept = await makeAcceptor(args);
  app.post('/_fp/i/v1', (request, response) => {
    accept(request.body, (body) => response.json(body));
  });
} else if (route === 'consent') {
  const decide = makeDecider(args[0] ?? '0');
  app.post('/v1/consent/can-process', (request, response) => {
    response.json(decide(request.body));
  });
} else {
  const body = {
    filler: 'a'.repeat(Math.max(0, Number(args[0] ?? '0') - JSON.stringify({ filler: '' }).length)),
  };
  app.get('/_fp/pubkey', (_request, response) => {
    response.json(body);
  });
}

serve(createServer(app));
