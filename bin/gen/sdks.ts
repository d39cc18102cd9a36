import { nodeFile } from './sdk-node.ts';
import { describeClient } from './sdk-surface.ts';

/** Generates from the OpenAPI document what all SDKs share: operations, shapes, new types, statuses and codes. */
export function sdkFiles(document: unknown): Readonly<Record<string, string>> {
  const client = describeClient(document);
  return {
    'sdk/node/src/wire.ts': nodeFile(client),
  };
}
