// Copies the licence into the folder that npm packs, before it does: a package needs it, the repository has it once.
import { copyFileSync } from 'node:fs';

copyFileSync(new URL('../LICENSE', import.meta.url), 'LICENSE');
