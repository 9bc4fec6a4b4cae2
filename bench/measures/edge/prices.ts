// What Cloudflare asks: developers.cloudflare.com/workers/platform/pricing, /d1/platform/pricing, /durable-objects/platform/pricing
// and /r2/pricing, August 2026.
const MILLION = 1_000_000

/** Included in the paid plan each month, and what each further million costs in dollars. */
const PRICES = {
  written: { included: 50 * MILLION, perMillion: 1 },
  read: { included: 25_000 * MILLION, perMillion: 0.001 },
  requests: { included: 10 * MILLION, perMillion: 0.3 },
  cpuMs: { included: 30 * MILLION, perMillion: 0.02 },
  objectRequests: { included: MILLION, perMillion: 0.15 },
  objectGbSeconds: { included: 400_000, perMillion: 12.5 },
  bucketWrites: { included: MILLION, perMillion: 4.5 },
  bucketReads: { included: 10 * MILLION, perMillion: 0.36 },
} as const
const PLAN_DOLLARS = 5
const STORAGE = { includedGb: 5, perGb: 0.75 }
const BUCKET = { includedGb: 10, perGb: 0.015 }
/** An object is billed for this much memory while it is awake. */
export const OBJECT_GB = 0.128

/** What one month uses. */
export type Usage = Readonly<Record<keyof typeof PRICES, number>> & {
  readonly storedGb: number
  readonly bucketGb: number
}

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
    objects: part('objectRequests') + part('objectGbSeconds'),
    storage: Math.max(0, usage.storedGb - STORAGE.includedGb) * STORAGE.perGb,
    bucket: part('bucketWrites') + part('bucketReads') + Math.max(0, usage.bucketGb - BUCKET.includedGb) * BUCKET.perGb,
  }
  return { parts, total: Object.values(parts).reduce((sum, dollars) => sum + dollars, 0) }
}
