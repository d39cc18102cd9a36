import { type AgentDirectory, addDirectory } from '../../src/agents/store.ts';
import type { Database } from '../../src/db/engine.ts';
import { NOW } from './make.ts';

/** As `gpd agents add` does, by an operator that no tenant's audit log is told of. */
export const addAgent = (database: Database, directory: AgentDirectory): Promise<void> =>
  addDirectory(database, directory, { actorOf: () => undefined, at: NOW });
