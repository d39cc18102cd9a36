import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Finds third-party test vectors, which are not part of this repository.
 * VECTORS_DIR names the folder `third-party/` or its parent.
 */
function findThirdParty(): string | null {
  const directory = process.env['VECTORS_DIR'];
  if (directory === undefined || directory === '') return null;
  const inside = join(directory, 'third-party');
  return existsSync(inside) ? inside : directory;
}

/** @returns null if the file exists; otherwise the reason and the remedy */
export function missingVectors(path: string): string | null {
  const folder = findThirdParty();
  if (folder === null) return `VECTORS_DIR is not set (name the folder with third-party/${path})`;
  return existsSync(join(folder, path)) ? null : `VECTORS_DIR holds no ${path}`;
}

/** Reads a file of C2SP/wycheproof (testvectors_v1), and merges each group into its tests. */
export function readWycheproof<Test>(name: string): readonly Test[] {
  const folder = findThirdParty();
  if (folder === null) throw new Error('VECTORS_DIR is not set');
  const file = JSON.parse(readFileSync(join(folder, 'wycheproof', name), 'utf8')) as {
    readonly numberOfTests: number;
    readonly testGroups: readonly { readonly tests: readonly object[] }[];
  };
  const tests = file.testGroups.flatMap(({ tests: list, ...group }) =>
    list.map((test) => ({ ...group, ...test })),
  );
  if (tests.length !== file.numberOfTests) throw new Error(`${name} is not whole`);
  return tests as Test[];
}

export interface SealVector {
  readonly kid: string;
  readonly alg: string;
  readonly recipient_private_d_hex: string;
  readonly recipient_public_hex: string;
  readonly ephemeral_private_d_hex: string;
  readonly epk_hex: string;
  readonly shared_secret_x_hex: string;
  readonly info_hex: string;
  readonly key_hex: string;
  readonly iv_hex: string;
  readonly aad_hex: string;
  readonly plaintext_utf8: string;
  readonly bundle: { readonly kid: string; readonly epk: string; readonly iv: string; readonly ct: string };
}

/** Reads the test vector of gpd-seal/1, which is part of this repository. */
export function readSealVector(): SealVector {
  return JSON.parse(
    readFileSync(new URL('../vectors/gpd-seal-1.json', import.meta.url), 'utf8'),
  ) as SealVector;
}
