import { within } from './read.ts';

const SAMPLES = 5000;
const RATE = 44_100;
/** Generous: the sum is part of the identity, and null for a slow machine would be another visitor. */
const AUDIO_MS = 1500;

/** Sum of the tail of a compressed tone: the compressor's arithmetic differs by engine and platform. */
async function renderSum(): Promise<number> {
  const context = new OfflineAudioContext(1, SAMPLES, RATE);
  const tone = context.createOscillator();
  tone.type = 'triangle';
  tone.frequency.value = 10_000;
  const squeeze = context.createDynamicsCompressor();
  squeeze.threshold.value = -50;
  squeeze.knee.value = 40;
  squeeze.ratio.value = 12;
  squeeze.attack.value = 0;
  squeeze.release.value = 0.25;
  tone.connect(squeeze).connect(context.destination);
  tone.start();
  const samples = (await context.startRendering()).getChannelData(0);
  return samples.subarray(SAMPLES - 500).reduce((sum, sample) => sum + Math.abs(sample), 0);
}

export async function collectAudio() {
  const sums = await within(AUDIO_MS, () => Promise.all([renderSum(), renderSum()]));
  return { audioSum: sums?.[0] ?? null, audioStable: sums && sums[0] === sums[1] };
}
