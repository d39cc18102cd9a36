import { hmacSha256 } from '../lib/crypto.ts';

/** Standard Webhooks: what a receiver checks before it believes a delivery. */

const SECRET_PREFIX = 'whsec_';

export function formatWebhookSecret(key: Uint8Array): string {
  return SECRET_PREFIX + Buffer.from(key).toString('base64');
}

/**
 * webhook-id, webhook-timestamp and webhook-signature: `v1,` + base64 HMAC-SHA-256 over `id.timestamp.body`.
 * @param timestamp epoch seconds
 */
export function webhookHeaders(key: Uint8Array, id: string, timestamp: number, body: string) {
  const signature = hmacSha256(key, `${id}.${timestamp}.${body}`).toString('base64');
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v1,${signature}`,
  };
}
