import { describe, expect, it } from 'vitest';
import { deriveTenantKeys } from '../../src/keys/master-key.ts';
import { createFirstPurpose } from '../../src/tenants/purposes.ts';

const ROOT = Buffer.alloc(32, 7);

describe('deriveTenantKeys', () => {
  it('derives the same keys from the same root, for ever', () => {
    const keys = deriveTenantKeys(ROOT);
    expect(deriveTenantKeys(Buffer.from(ROOT)).identity).toEqual(keys.identity);
    // Stored durable ids and visitorIds depend on these keys: a change would forget every visitor.
    expect(keys.identity.toString('hex')).toBe(
      '0671b5a3edabc997d8b6a14f498ed2a3e735824b377ef5a1fb8b2921e337045d',
    );
    expect(keys.durable.toString('hex')).toBe(
      '2e1c7223d325fe7decde8505ffaa956dc0abb58d36df0086be257ae2ee9cc01d',
    );
    expect(keys.epoch(680).toString('hex')).toBe(
      '4fc8c5344e93a1b660ff2c75a793414daa152bc3dd327c8764e3b2f450e202b9',
    );
  });

  it('derives no two keys alike', () => {
    const all = [ROOT, Buffer.alloc(32, 8)].flatMap((root) => {
      const keys = deriveTenantKeys(root);
      return [
        root,
        keys.identity,
        keys.durable,
        keys.population,
        keys.epoch(0),
        keys.epoch(1),
        keys.epoch(-1),
      ];
    });
    expect(new Set(all.map((key) => key.toString('hex'))).size).toBe(all.length);
    for (const key of all) expect(key).toHaveLength(32);
  });
});

describe('createFirstPurpose', () => {
  it('is device identification, which a GPC signal opts out of', () => {
    expect(createFirstPurpose()).toMatchObject({
      id: 'device-identification',
      gpc: 'opt-out',
      lawfulBasis: 'consent',
    });
  });
});
