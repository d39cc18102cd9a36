/**
 * A stub of the server for the preview of the banner. It answers like gpd from values in the page, and stores nothing. The policy
 * of the page allows no connection, so nothing can be sent even if this stub fails.
 */

const { banner } = document.documentElement.dataset;

const HASH = '0'.repeat(64);

function answerTo(path, body) {
  if (path === '/v1/consent/banner') return [200, JSON.parse(banner)];
  if (/^\/v1\/consent\/(?:grant|deny|withdraw)$/.test(path)) {
    const { purposes } = JSON.parse(body);
    return [
      201,
      { entries: purposes.map((purpose) => ({ purpose, seq: 0, hash: HASH })), seq: 0, hash: HASH },
    ];
  }
  return [404, { error: 'not-found' }];
}

window.fetch = async (url, init) => {
  const [status, answer] = answerTo(new URL(url, document.baseURI).pathname, init?.body);
  return new Response(JSON.stringify(answer), { status, headers: { 'content-type': 'application/json' } });
};
