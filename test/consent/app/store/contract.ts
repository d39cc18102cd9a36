import type { MakeDatabase } from '../../../db/contract/database.ts';
import { appenderContract } from './appender.ts';
import { doubtsContract } from './doubts.ts';
import { erasureContract } from './erasure.ts';
import { faultsContract } from './faults.ts';
import { forgedContract } from './forged.ts';
import { idempotencyContract } from './idempotency.ts';
import { readerContract } from './reader.ts';

/** Every database must pass this suite for consent and its log. */
export function consentContract(make: MakeDatabase): void {
  appenderContract(make);
  doubtsContract(make);
  erasureContract(make);
  faultsContract(make);
  forgedContract(make);
  idempotencyContract(make);
  readerContract(make);
}
