import { DAY, isoTime } from '../../lib/clock.ts';

/** The period and the person that a file of evidence is about, as text from a command or a query. */

export interface Period {
  /** Epoch milliseconds, inclusive. */
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
}

export interface EvidenceRequest extends Period {
  readonly principal: string | null;
  readonly request: string | null;
}

/** The request does not say what it is about; the message names the field. */
export class BadEvidenceRequest extends Error {
  readonly field: string;

  constructor(field: string, problem: string) {
    super(problem);
    this.name = 'BadEvidenceRequest';
    this.field = field;
  }
}

const TIME = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?)(Z|[+-]\d{2}:\d{2})?)?$/;

/** Does the calendar have this day? `Date.parse` takes 30 February for a day of March. */
function isDay(day: string): boolean {
  const at = Date.parse(day);
  return !Number.isNaN(at) && new Date(at).toISOString().slice(0, 10) === day;
}

function readTime(field: string, text: string | null): number {
  if (text === null) throw new BadEvidenceRequest(field, 'missing');
  const [, day = '', time = '00:00', zone = 'Z'] = TIME.exec(text) ?? [];
  const at = isDay(day) ? Date.parse(`${day}T${time}${zone}`) : Number.NaN;
  if (Number.isNaN(at))
    throw new BadEvidenceRequest(field, 'must be a date such as 2026-11-01, or a time in ISO 8601; UTC');
  return at;
}

const textOf = (field: string, value: unknown): string | null => {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'string' || value === '') throw new BadEvidenceRequest(field, 'must be one text');
  return value;
};

/** The longest period: a century of entries is a typing error. */
const MAX_DAYS = 36_525;

/** @throws {BadEvidenceRequest} */
export function readEvidenceRequest(
  given: {
    readonly [Name in 'from' | 'to' | 'principal' | 'request']?: unknown;
  },
): EvidenceRequest {
  const from = readTime('from', textOf('from', given.from));
  const to = readTime('to', textOf('to', given.to));
  if (to <= from) throw new BadEvidenceRequest('to', 'must be after from: the period is empty');
  if (to - from > MAX_DAYS * DAY) throw new BadEvidenceRequest('to', 'is more than 100 years after from');
  const [principal, request] = [textOf('principal', given.principal), textOf('request', given.request)];
  if (principal !== null && request !== null)
    throw new BadEvidenceRequest('request', 'name a principal or a request, not both');
  return { from, to, principal, request };
}

/** The name under which a browser saves the file. */
export const evidenceFileName = (kid: string, { from, to }: Period): string =>
  `evidence-${kid}-${isoTime(from).slice(0, 10)}-${isoTime(to).slice(0, 10)}.zip`;
