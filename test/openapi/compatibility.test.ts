import { describe, expect, it } from 'vitest';
import published from '../../docs/openapi.published.json' with { type: 'json' };
import { openApiDocument } from '../../src/schema/openapi.ts';
import { type Document, incompatibleChanges } from './compatibility.ts';

const before = published as unknown as Document;
const now = openApiDocument('0.0.0') as unknown as Document;

/** As loose as JSON is: these tests cut pieces out of it. */
type Loose = { [key: string]: Loose } & { required: string[] };

function changed(edit: (document: Loose) => void): Document {
  const copy = structuredClone(published) as unknown as Loose;
  edit(copy);
  return copy as unknown as Document;
}

describe('the OpenAPI document', () => {
  it('takes nothing away from what was published', () => {
    expect(incompatibleChanges(before, now)).toEqual([]);
  });

  it('is compatible with itself', () => {
    expect(incompatibleChanges(before, before)).toEqual([]);
  });

  it('names a route that is gone', () => {
    const after = changed((document) => {
      delete document['paths']?.['/v1/sessions'];
    });
    expect(incompatibleChanges(before, after)).toEqual(['POST /v1/sessions is gone']);
  });

  it('names a field of a request that is required now', () => {
    const after = changed((document) => {
      const body = document['paths']?.['/v1/consent/can-process']?.['post']?.['requestBody'];
      body?.['content']?.['application/json']?.['schema']?.required.push('minSeq');
    });
    expect(incompatibleChanges(before, after)).toEqual([
      'POST /v1/consent/can-process body: minSeq is required now',
    ]);
  });

  it('names a field of an answer that is not always there', () => {
    const after = changed((document) => {
      const answer = document['paths']?.['/v1/consent/can-process']?.['post']?.['responses']?.['200'];
      const schema = answer?.['content']?.['application/json']?.['schema'];
      if (schema) schema.required = schema.required.filter((name) => name !== 'proof');
    });
    expect(incompatibleChanges(before, after)).toEqual([
      'POST /v1/consent/can-process 200: proof is not always there any more',
    ]);
  });
});
