// What Cloudflare asks: developers.cloudflare.com/workers/platform/pricing and /d1/platform/pricing, August 2026.
const MILLION = 1_000_000

/** Included in the paid plan each month, and what each further million costs in dollars. */
const PRICES = {
  written: { included: 50 * MILLION, perMillion: 1 },
  read: { included: 25_000 * MILLION, perMillion: 0.001 },
  requests: { included: 10 * MILLION, perMillion: 0.3 },
  cpuMs: { included: 30 * MILLION, perMillion: 0.02 },
} as const
const PLAN_DOLLARS = 5
const STORAGE = { includedGb: 5, perGb: 0.75 }

/** What one month uses. */
export type Usage = Readonly<Record<keyof typeof PRICES, number>> & { readonly storedGb: number }

/** Dollars of a month by part, and together. */
export function billOf(usage: Usage) {
  const part = (name: keyof typeof PRICES) => {
    const { included, perMillion } = PRICES[name]
    return (Math.max(0, usage[name] - included) / MILLION) * perMillion
  }
  const parts = {
    plan: PLAN_DOLLARS,
    written: part('written'),
    read: part('read'),
    requests: part('requests'),
    cpu: part('cpuMs'),
    storage: Math.max(0, usage.storedGb - STORAGE.includedGb) * STORAGE.perGb,
  }
  return { parts, total: Object.values(parts).reduce((sum, dollars) => sum + dollars, 0) }
}
