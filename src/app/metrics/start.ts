import type { Config } from '../../config.ts';
import type { Metrics, MetricsDeps } from './metrics.ts';

/**
 * Null without GPD_METRICS_LISTEN; then nothing of it is loaded either.
 * @throws {ConfigError} with the database closed, so that the process ends
 */
export async function startMetricsWhereAsked(config: Config, deps: MetricsDeps): Promise<Metrics | null> {
  if (config.metrics_listen === null) return null;
  const { startMetrics } = await import('./metrics.ts');
  try {
    return await startMetrics(config, config.metrics_listen, deps);
  } catch (error) {
    await deps.database.close();
    throw error;
  }
}
