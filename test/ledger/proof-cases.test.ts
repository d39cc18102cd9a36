import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { verifyConsistency } from '../../src/ledger/verify.ts';
import { verifyInclusion } from '../support/log-reader.ts';
import { describeWithTool } from '../support/tools.ts';

const PROOF_CASES = 'merkle/proof-cases.json';

const NAMED = process.env['VECTORS_DIR'] ?? '';
const PLACES = [join(NAMED, 'third-party', PROOF_CASES), join(NAMED, PROOF_CASES)];
const path = NAMED === '' ? undefined : PLACES.find((place) => existsSync(place));
const missing = path === undefined ? `VECTORS_DIR names no folder with third-party/${PROOF_CASES}` : null;

interface Case {
  readonly name: string;
  readonly wantErr: boolean;
  readonly proof: readonly string[] | null;
  readonly start: number;
  readonly end: number;
}

interface InclusionCase extends Case {
  readonly leafIdx: number;
  readonly leafHash: string;
  readonly root: string;
  readonly treeSize: number;
}

interface ConsistencyCase extends Case {
  readonly root1: string;
  readonly root2: string;
  readonly size1: number;
  readonly size2: number;
  readonly size: number;
}

/** The cases whose name begins so. */
function readProofCases<Kind extends Case>(kind: string): readonly Kind[] {
  if (path === undefined) return [];
  const cases = JSON.parse(readFileSync(path, 'utf8')) as readonly Kind[];
  return cases.filter(({ name }) => name.startsWith(`${kind}/`));
}

const bytes = (base64: string): Buffer => Buffer.from(base64, 'base64');

function isIncluded({ leafHash, proof, root }: InclusionCase, index: number, size: number): boolean {
  return verifyInclusion(index, size, bytes(leafHash), (proof ?? []).map(bytes), bytes(root));
}

function isConsistent({ proof, root1, root2 }: ConsistencyCase, size1: number, size2: number): boolean {
  return verifyConsistency(size1, size2, (proof ?? []).map(bytes), bytes(root1), bytes(root2));
}

describeWithTool('the verifier and the proof cases of transparency-dev/merkle', missing, () => {
  it('judges inclusion as they do', () => {
    const cases = readProofCases<InclusionCase>('inclusion');
    expect(cases).toHaveLength(98);
    for (const each of cases) {
      expect(isIncluded(each, each.leafIdx, each.treeSize), each.name).toBe(!each.wantErr);
    }
  });

  it('judges consistency as they do', () => {
    const cases = readProofCases<ConsistencyCase>('consistency');
    expect(cases).toHaveLength(98);
    for (const each of cases) {
      expect(isConsistent(each, each.size1, each.size2), each.name).toBe(!each.wantErr);
    }
  });

  it('judges a subtree at the left edge as an older log', () => {
    const cases = readProofCases<ConsistencyCase>('subtreeconsistency');
    expect(cases).toHaveLength(118);
    const fromStart = cases.filter(({ start, end }) => start === 0 && end > 0);
    expect(fromStart).toHaveLength(91);
    for (const each of fromStart)
      expect(isConsistent(each, each.end, each.size), each.name).toBe(!each.wantErr);
  });

  it('takes no proof of an empty subtree (they do, of no leaves) nor of one elsewhere, of which a log has none', () => {
    const otherCases = readProofCases<ConsistencyCase>('subtreeconsistency').filter(
      ({ start, end }) => start > 0 || end === 0,
    );
    expect(otherCases).toHaveLength(27);
    expect(otherCases.filter(({ start, end, wantErr }) => !wantErr && start !== end)).toEqual([]);
    for (const each of otherCases)
      expect(isConsistent(each, each.end - each.start, each.size), each.name).toBe(false);
  });
});
