import { type AgentDirectory, addDirectory } from '../../src/agents/store.ts';
import type { Database } from '../../src/db/engine.ts';
import { NOW } from './make.ts';

/** Adds a directory like `gpd agents add`, but without an audit row in any tenant. */
export const addAgent = (database: Database, directory: AgentDirectory): Promise<void> =>
  addDirectory(database, directory, { actorOf: () => undefined, at: NOW });
