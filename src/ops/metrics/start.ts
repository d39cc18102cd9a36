import type { Config } from '../../config.ts';
import type { Metrics, MetricsDeps } from './metrics.ts';

/**
 * Null without GPD_METRICS_LISTEN and a socket of the unit; then nothing of it is loaded either.
 * @throws {ConfigError} with the database closed, so that the process ends
 */
export async function startMetricsWhereAsked(
  config: Config,
  socket: number | null,
  deps: MetricsDeps,
): Promise<Metrics | null> {
  const where = socket ?? config.metrics_listen;
  if (where === null) return null;
  const { startMetrics } = await import('./metrics.ts');
  try {
    return await startMetrics(config, where, deps);
  } catch (error) {
    await deps.database.close();
    throw error;
  }
}
