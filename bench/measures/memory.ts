// Resident memory of the service: idle, under a mixed load, and after it.
import { setTimeout as wait } from 'node:timers/promises'
import { load } from '../load/requests.ts'
import { MESSAGES } from '../seed.ts'
import { memoryMb, PASSWORD, signInPeople, startService } from '../servers/processes.ts'
import { report } from '../table.ts'
import { PEOPLE } from './compare.ts'

const SECONDS = Number(process.env['BENCH_LIVE_SECONDS'] ?? 60)
const REST_MS = 20_000

/** What people ask for in turn, no two pages alike. */
const MIXED: readonly ((n: number) => string)[] = [
  (n) => `/api/nodes?limit=${100 + (n % 400)}`,
  () => '/api/nodes',
  (n) => `/api/messages?limit=${1 + (n % 1000)}`,
  (n) => `/api/messages?before=${MESSAGES - (n % 10_000)}`,
  (n) => `/api/messages?q=the&before=${MESSAGES - (n % 10_000)}`,
  (n) => `/api/packets?limit=${1 + (n % 500)}`,
  (n) => `/api/audit?limit=${1 + (n % 100)}`,
  (n) => `/api/telemetry?nodeId=${2_000_000_000 + (1 + (n % 500)) * 7919}&metric=deviceMetrics.voltage`,
  () => '/api/dashboard',
  () => '/api/openapi.json',
]

export async function measureMemory(dataDir: string): Promise<void> {
  const service = await startService(dataDir, { ADMIN_PASSWORD: PASSWORD }, { monitored: false })
  const tell = (work: string, most: number) => {
    const { now } = memoryMb(service)
    report(`memory, ${work}`, `${now.toFixed(0)} MB`, `≤ ${most} MB`, now <= most)
  }
  try {
    await wait(REST_MS)
    tell('idle', 120)
    const cookies = await signInPeople(dataDir, service.port, PEOPLE)
    const path = (n: number) => MIXED[n % MIXED.length]?.(n) ?? ''
    const headers = { 'accept-encoding': 'gzip' }
    await load(service.port, { path, cookies, headers }, { connections: 2 * PEOPLE, seconds: SECONDS })
    tell('at the end of a mixed load', 150)
    await wait(REST_MS)
    tell('after a mixed load and 20 s of rest', 150)
  } finally {
    await service.stop()
  }
}
