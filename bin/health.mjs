// The HEALTHCHECK of the container image: asks the server of this configuration for /healthz. It exits with 0 or 1, and prints the
// reason of a failure on stderr.

const LIMIT_MS = 4000;

const { loadConfig } = await import(new URL('../dist/config.js', import.meta.url).href);
const { askLocalServer } = await import(new URL('../dist/egress/local-server.js', import.meta.url).href);
try {
  const { status } = await askLocalServer(loadConfig({ environment: process.env }), '/healthz', LIMIT_MS);
  if (status !== 200) throw new Error(`/healthz answered ${status}`);
} catch (error) {
  process.stderr.write(`gpd: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
