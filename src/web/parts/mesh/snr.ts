import { decimal } from '../../format.ts'

/** How well a hop was heard, with the limits of Meshtastic's own applications for the default modem preset. */
export type Signal = 'good' | 'fair' | 'weak' | 'unknown'

export const GOOD_DB = -7
export const FAIR_DB = -15

export function signalOf(snr: number | null): Signal {
  if (snr === null) return 'unknown'
  return snr >= GOOD_DB ? 'good' : snr >= FAIR_DB ? 'fair' : 'weak'
}

/** The design token of each signal's colour. */
export const SIGNAL_COLOURS = {
  good: '--good',
  fair: '--warn',
  weak: '--bad',
  unknown: '--faint',
} as const satisfies Record<Signal, string>

/** With a real minus sign; null: unknown. */
export function decibels(snr: number | null): string {
  return snr === null ? '?' : `${decimal(snr, 2)} dB`
}
