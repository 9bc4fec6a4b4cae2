import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { createProcessMetrics } from '../../../src/node/metrics/process.ts'
import { buildService, type Built, signInAt, startService } from '../../support/built/built-service.ts'

const PASSWORD = 'watched from outside'

let built: Built
const dir = mkdtempSync(join(tmpdir(), 'mesh-metrics-'))
beforeAll(() => {
  built = buildService()
})
afterAll(() => {
  rmSync(dir, { recursive: true })
})

it('measures this process in base units', () => {
  const values = Object.fromEntries(
    createProcessMetrics()().map(({ name, samples }) => [name, samples[0]?.value ?? -1]),
  )
  const { rss } = process.memoryUsage()
  expect(values['process_resident_memory_bytes']).toBeGreaterThan(rss / 2)
  expect(values['process_resident_memory_bytes']).toBeLessThan(rss * 2)
  const { user, system } = process.cpuUsage()
  expect(Math.abs(Number(values['process_cpu_seconds_total']) - (user + system) / 1e6)).toBeLessThan(1)
  expect(Math.abs(Number(values['process_start_time_seconds']) + process.uptime() - Date.now() / 1000)).toBeLessThan(30)
  expect(values['nodejs_heap_used_bytes']).toBeGreaterThan(1_000_000)
  expect(values['nodejs_eventloop_delay_p99_seconds']).toBeGreaterThanOrEqual(0)
  expect(values['nodejs_eventloop_delay_max_seconds']).toBeGreaterThanOrEqual(0)
})

it('shows a running service from outside (live, dashboard, metrics) and lets it stop at once', async () => {
  const service = await startService(built, { DATA_DIR: dir, ADMIN_PASSWORD: PASSWORD, DEMO: 'true' })
  const headers = { cookie: await signInAt(service.url, PASSWORD) }
  const stream = await fetch(`${service.url}/api/events`, { headers })
  const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
  expect((await reader?.read())?.value).toContain(': open\n')
  await vi.waitFor(async () => {
    const dashboard = Object(await (await fetch(`${service.url}/api/dashboard`, { headers })).json())
    expect(dashboard).toMatchObject({ link: { kind: 'demo', state: 'connected' }, lastBackup: null })
    expect(dashboard.counts.nodes).toBeGreaterThan(5)
  }, 60_000)
  const metrics = await (await fetch(`${service.url}/api/metrics`, { headers })).text()
  for (const name of [
    'mesh_link_up{link="demo",kind="demo"} 1',
    'mesh_ingest_queue_events ',
    'mesh_http_requests_total{method="GET",route="/api/events",status="200"} 1',
    'mesh_backups 0',
    'process_resident_memory_bytes ',
  ]) {
    expect(metrics).toContain(`\n${name}`)
  }
  expect(await service.stop('SIGTERM')).toBe(0)
  // A connection that delays the stop is cut, which would not be a clean end.
  let last = await reader?.read()
  while (last?.done === false) last = await reader?.read()
  expect(last?.done).toBe(true)
})
