import { readFileSync } from 'node:fs';
import { goFile } from './sdk-go.ts';
import { javaFiles } from './sdk-java.ts';
import { nodeFile } from './sdk-node.ts';
import { blockingMethods, pythonFile } from './sdk-python.ts';
import { describeClient } from './sdk-surface.ts';

/** Generates from the OpenAPI document what all SDKs share: operations, shapes, new types, statuses and codes. */
export function sdkFiles(document: unknown): Readonly<Record<string, string>> {
  const client = describeClient(document);
  const methods = readFileSync(
    new URL('../../sdk/python/src/gpd_consent/_async_methods.py', import.meta.url),
    'utf8',
  );
  return {
    'sdk/node/src/wire.ts': nodeFile(client),
    'sdk/python/src/gpd_consent/_wire.py': pythonFile(client),
    'sdk/python/src/gpd_consent/_methods.py': blockingMethods(methods),
    'sdk/go/wire_gen.go': goFile(client),
    ...javaFiles(client),
  };
}
