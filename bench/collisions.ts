import { readFacts } from '../src/ingest/verdict/facts.ts';
import { collisionChance, isCoarse, stableInputs } from '../src/ingest/verdict/identity.ts';
import { readSignals } from '../src/schema/signals.ts';
import type { Row } from './lib/report.ts';
import { eachPerson } from './matrix/corpus.ts';
import type { Captured } from './matrix/lib/types.ts';

/** How often generated devices share an id, and how many of those visits the rule flags; one tenant, one day. */

interface Device {
  readonly id: string;
  readonly coarse: boolean;
}

/** The corpus has no canvas: ids are those of all other stable signals, so that more are shared than in truth. */
function deviceOf({ signals, headers }: Captured): Device {
  const tier = { headers, https: true, ja4: null, hosting: null };
  const facts = readFacts(readSignals(signals), tier);
  const inputs = { ...stableInputs(facts), canvas: null };
  return { id: JSON.stringify(inputs), coarse: isCoarse(facts) };
}

/** A tenant's day in memory: networks by id. */
function makeDay(risk: number) {
  const networks = new Map<string, Set<number>>();
  let pairs = 0;
  return (id: string, network: number) => {
    const seen = networks.get(id) ?? new Set();
    const marked = seen.has(network);
    const today = seen.size + (marked ? 0 : 1);
    const spread = { networksToday: today, pairsOfWeek: today, tenantPairsOfWeek: pairs };
    const told = collisionChance({ seen: seen.size > 0, marked, spread }) > risk;
    networks.set(id, seen.add(network));
    pairs += marked ? 0 : 1;
    return { known: seen.size > 1 || marked, told };
  };
}

const percent = (part: number, whole: number): number => (100 * part) / whole;
const row = (name: string, value: number, unit = '%', details: Row['details'] = {}): Row => ({
  name: `collisions: ${name}`,
  value,
  unit,
  goal: null,
  details,
});

export function benchCollisions(rows: number, seed: number, risk = 0.01): Row[] {
  const all: Device[] = [];
  eachPerson(rows, seed, (bundle) => all.push(deviceOf(bundle)));
  const devices = all.filter(({ coarse }) => !coarse);
  const counts = new Map<string, number>();
  for (const { id } of devices) counts.set(id, (counts.get(id) ?? 0) + 1);
  const sharing = [...counts.values()];
  const alike = sharing.reduce((sum, count) => sum + count * (count - 1), 0);
  const visit = makeDay(risk);
  const first = devices.map(({ id }, network) => visit(id, network));
  const again = devices.map(({ id }, network) => visit(id, network));
  const twins = devices.map(({ id }, i) => visit(id, devices.length + i));
  const met = first.filter(({ known }) => known);
  const toldOf = (visits: typeof first): number =>
    percent(visits.filter(({ told }) => told).length, visits.length);
  const shared = sharing.reduce((sum, count) => sum + (count > 1 ? count : 0), 0);
  return [
    row('coarse by nature', percent(all.length - devices.length, all.length), '%', { devices: all.length }),
    row('others that share an id', percent(shared, devices.length), '%', { devices: devices.length }),
    row('bits of a pair', -Math.log2(alike / (devices.length * (devices.length - 1))), 'bits'),
    row('first visits on an id that was another’s, told', toldOf(met), '%', { visits: met.length }),
    row('all first visits, told', toldOf(first)),
    row('second visits from the same network, told', toldOf(again)),
    row('first visits of twins, told', toldOf(twins), '%', { visits: twins.length }),
  ];
}
