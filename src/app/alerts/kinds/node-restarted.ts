import { inWords } from './durations.ts'

export type Uptime = { readonly seconds: number; readonly t: number }

/** Whether a node restarted between two reports of its uptime. */
export function isRestart(before: Uptime, after: Uptime): boolean {
  return after.t > before.t && after.seconds < before.seconds
}

export function restartSentence(name: string, before: Uptime): string {
  return `${name} restarted; it had run for ${inWords(before.seconds * 1000)}`
}
