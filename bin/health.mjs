// For a container's HEALTHCHECK: asks the server of this configuration whether it lives. Exit 0 or 1, and a word on stderr.
import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';

const LIMIT_MS = 4000;

/** @param {string} word */
function unwell(word) {
  process.stderr.write(`gpd: ${word}\n`);
  process.exit(1);
}

const { loadConfig } = await import(new URL('../dist/config.js', import.meta.url).href);
const config = loadConfig({ environment: process.env });
const everywhere = config.host === '0.0.0.0' || config.host === '::';
const options = {
  host: everywhere ? '127.0.0.1' : config.host,
  port: config.port,
  path: '/healthz',
  timeout: LIMIT_MS,
  // The server's own certificate, on this very machine: for whom it is made does not matter.
  rejectUnauthorized: false,
};
const get = config.tls_cert === null ? getHttp : getHttps;
get(options, (response) => {
  response.resume();
  if (response.statusCode !== 200) unwell(`/healthz answered ${response.statusCode}`);
  process.exit(0);
})
  .on('timeout', () => unwell(`/healthz did not answer in ${LIMIT_MS} ms`))
  .on('error', (error) => unwell(error.message));
