import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import * as z from 'zod'
import { createMeter } from '../../src/app/system/metrics/meter.ts'
import { noteRun } from '../../src/app/system/status/runs.ts'
import { checkRelease } from '../../src/app/system/status/release.ts'
import { serviceState } from '../../src/db/schema.ts'
import { createProcessMetrics } from '../../src/node/metrics/process.ts'
import { createTestApp, NO_RADIO, START, type TestApp } from '../support/app.ts'
import { buildService, type Service, signInAt, startService } from '../support/built/built-service.ts'
import { type Prometheus, promtool, startPrometheus } from '../support/servers/prometheus.ts'
import { portOf } from '../support/servers/port-of.ts'

const PASSWORD = 'watched from outside'
const ROOT = new URL('../../deploy/', import.meta.url)
const RULES = new URL('prometheus/mesh-rules.yml', ROOT)
const DASHBOARD = new URL('grafana/mesh-monitoring-service.json', ROOT)

const panelSchema = z.object({
  id: z.int(),
  type: z.string(),
  title: z.string(),
  gridPos: z.object({ x: z.int().min(0), y: z.int().min(0), w: z.int().min(1), h: z.int().min(1) }),
  datasource: z.object({ type: z.literal('prometheus'), uid: z.literal('${datasource}') }).optional(),
  targets: z.array(z.object({ expr: z.string(), refId: z.string() })).default([]),
})
const dashboard = z
  .object({
    title: z.string(),
    uid: z.string(),
    panels: z.array(panelSchema),
    templating: z.object({ list: z.array(z.object({ name: z.string(), definition: z.string().optional() })) }),
  })
  .parse(JSON.parse(readFileSync(DASHBOARD, 'utf8')))
const panels = dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ title, expr })))

/** The rules' expressions; promtool has read the file as YAML. */
const rules = readFileSync(RULES, 'utf8')
const expressions = Array.from(
  rules.matchAll(/- alert: (\w+)\n\s+expr: (?:>-\n((?:\s{10,}.*\n)+)|(.*)\n)/g),
  ([, name = '', folded, plain]) => ({ name, expr: (folded ?? plain ?? '').replaceAll(/\s+/g, ' ').trim() }),
)

let service: Service
let everything: { readonly app: TestApp; readonly server: Server }
let prometheus: Prometheus
const dir = mkdtempSync(join(tmpdir(), 'mesh-deploy-'))
const outputs: string[] = []

beforeAll(async () => {
  service = await startService(buildService(), { DATA_DIR: dir, ADMIN_PASSWORD: PASSWORD, DEMO: 'true' })
  everything = await serveEverything()
  const token = await tokenOf(service.url, await signInAt(service.url, PASSWORD))
  const admin = await everything.app.admin()
  const made = await admin.send('POST', '/api/tokens', { name: 'prometheus', scopes: ['metrics'] })
  const other = { url: `http://127.0.0.1:${portOf(everything.server)}`, token: String(Object(await made.json()).token) }
  const targets = [{ url: service.url, token }, other]
  for (const target of targets) {
    const headers = { authorization: `Bearer ${target.token}` }
    outputs.push(await (await fetch(`${target.url}/api/metrics`, { headers })).text())
  }
  prometheus = await startPrometheus(targets)
  // Rates need two scrapes of each.
  await vi.waitFor(async () => {
    expect(await prometheus.query('count_over_time(mesh_uptime_seconds[1m]) > 2')).toHaveLength(2)
  }, 60_000)
})
afterAll(async () => {
  await prometheus?.stop()
  everything?.server.close()
  everything?.app.close()
  await service?.stop('SIGTERM')
  rmSync(dir, { recursive: true })
})

async function tokenOf(url: string, cookie: string): Promise<string> {
  const headers = { cookie, 'content-type': 'application/json', origin: url }
  const body = JSON.stringify({ name: 'prometheus', scopes: ['metrics'] })
  return String(Object(await (await fetch(`${url}/api/tokens`, { method: 'POST', headers, body })).json()).token)
}

/** A service that has what the demonstration lacks: a collector, an anchor, a platform's jobs, backups, alerts, rules. */
async function serveEverything(): Promise<typeof everything> {
  const meter = createMeter({ now: () => performance.now(), process: createProcessMetrics() })
  const link = {
    name: '192.0.2.8:4403',
    kind: 'tcp' as const,
    state: 'connected' as const,
    since: START,
    lastFrameAt: START,
    reconnects: 2,
    reason: null,
    radio: { nodeNum: 0xa0cb0001, firmwareVersion: '2.7.1', hwModel: 'RAK4631', role: 'ROUTER' },
    queue: { free: 3, maxlen: 16 },
    txEnabled: true,
    notice: null,
  }
  const collector = {
    target: 'mesh.example.org',
    state: 'delivering' as const,
    waiting: 3,
    lastDeliveredAt: START,
    delivered: 9,
    dropped: 1,
    filtered: 2,
    reason: null,
  }
  const backup = { name: 'b', createdAt: START, kind: 'scheduled', sizeBytes: 4096 }
  const app = await createTestApp({
    env: { AUDIT_ANCHOR_URL: 'https://anchor.example.org/', UPDATE_CHECK_URL: 'https://releases.example.org/' },
    ports: {
      meter,
      radio: { ...NO_RADIO, links: () => [link], collector: () => collector },
      backups: Object({ list: async () => [backup], running: () => null, nextRun: () => START + 1000 }),
      disk: { isFull: () => true, makeRoom() {}, space: () => ({ total: 9e9, free: 4e9, spare: 4096 }) },
      instances: { list: () => [{ id: 'a1b2c3d4', isSelf: true, hasLease: true, seenAt: START }] },
      clockWatch: Object({ state: () => ({ state: 'confirmed', confirmed: START }), trusted: () => START }),
    },
  })
  const { db } = app.store
  const day = 86_400_000
  const samples = [2, 1, 0].map((days) => [START - days * day, 1e9, 4e9 + days * 1e9, 9e9])
  await db.insert(serviceState).values({ name: 'storage', value: JSON.stringify(samples), updatedAt: 1 })
  const put = app.store.sqlite.prepare('insert into settings values (?, ?, 1)')
  const run = { at: START, ok: false, error: 'disk full', succeededAt: START - day, failures: 1 }
  put.run('backup.lastRun', JSON.stringify(run))
  const anchor = { target: 'x', day: '', pending: [], last: null, failures: 1, nextAt: 0, deliveredAt: START }
  put.run('auditAnchor', JSON.stringify(anchor))
  await noteRun(app.store, 'upkeep', false, START)
  await checkRelease({
    ...app.ports,
    outbound: Object({ read: async () => ({ status: 200, text: '{"version":"9.0.0"}' }) }),
  })
  app.store.sqlite.exec("insert into sweeps values ('telemetry', null, 1, 1)")
  meter.countPacket('TEXT_MESSAGE_APP')
  meter.countBatch({ signatures: new Map([['valid', 1]]), refusedValues: new Map([['batteryLevel', 1]]) })
  meter.countAutomation('announce', 'sent')
  meter.countAlertDelivery('ntfy', 'delivered')
  const server = createServer((request, response) => {
    const answer = async () => {
      const headers = new Headers({ authorization: String(request.headers.authorization) })
      const { status, text, ...told } = await read(app, String(request.url), headers)
      response.writeHead(status, told.headers)
      response.end(text)
    }
    void answer().catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { app, server }
}

async function read(app: TestApp, path: string, headers: Headers) {
  const answer = await app.request(path, { headers })
  return { status: answer.status, headers: Object.fromEntries(answer.headers), text: await answer.text() }
}

describe('Prometheus', () => {
  test('promtool accepts the rules, and each fires when it should and not before', async () => {
    const file = (name: string) => new URL(`prometheus/${name}`, ROOT).pathname
    expect(await promtool(['check', 'rules', RULES.pathname])).toMatch(/SUCCESS: 20 rules found/)
    expect(await promtool(['test', 'rules', file('mesh-rules.test.yml')])).toContain('SUCCESS')
    expect(await promtool(['check', 'config', '--syntax-only', file('prometheus.yml')])).toContain('SUCCESS')
  })

  test('every rule has its own test', () => {
    const tested = readFileSync(new URL('prometheus/mesh-rules.test.yml', ROOT), 'utf8')
    expect(expressions).toHaveLength(20)
    for (const { name } of expressions) expect(tested).toMatch(new RegExp(`alertname: ${name}\\n\\s+exp_alerts:`))
  })

  test('promtool finds nothing to criticise in the output of the service', async () => {
    expect(outputs).toHaveLength(2)
    for (const output of outputs) {
      expect(output).toContain('mesh_build_info{version="')
      expect(await promtool(['check', 'metrics'], output)).toBe('')
    }
  })

  test.each(expressions)('$name reads metrics and labels that exist', async ({ expr }) => {
    // Without the comparison, which nothing needs to fulfil now.
    for (const selector of selectorsOf(expr)) {
      expect((await prometheus.query(`count(${selector})`)).length, selector).toBe(1)
    }
    await prometheus.query(expr)
  })
})

/** The series that an expression reads, with the labels that it asks for. */
function selectorsOf(expr: string): string[] {
  return Array.from(expr.matchAll(/\b((?:mesh|nodejs|process)_\w+|up)\b(\{[^}]*\})?/g), ([, name = '', labels = '']) =>
    // No request may have failed yet.
    name === 'mesh_http_requests_total' ? name : `${name}${labels}`,
  )
}

describe('Grafana', () => {
  test('the panels have their own ids and places, and use the data source that is chosen', () => {
    const ids = dashboard.panels.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    const taken = new Set<string>()
    for (const { title, type, gridPos, datasource, targets } of dashboard.panels) {
      expect([title, gridPos.x + gridPos.w <= 24]).toStrictEqual([title, true])
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect([title, taken.has(`${x} ${y}`)]).toStrictEqual([title, false])
          taken.add(`${x} ${y}`)
        }
      }
      expect([title, type === 'row', datasource === undefined, targets.length === 0]).toStrictEqual([
        title,
        type === 'row',
        type === 'row',
        type === 'row',
      ])
    }
  })

  test('its variables find the service', async () => {
    const { list } = dashboard.templating
    expect(list.map(({ name }) => name)).toStrictEqual(['datasource', 'job', 'instance'])
    expect(list.slice(1).map(({ definition }) => definition)).toStrictEqual([
      'label_values(mesh_build_info, job)',
      'label_values(mesh_build_info{job="$job"}, instance)',
    ])
    const found = await prometheus.query('mesh_build_info{job="mesh"}')
    expect(found.map(({ metric }) => metric['instance'])).toHaveLength(2)
  })

  test.each(panels)('$title: $expr shows something', async ({ expr }) => {
    const filled = expr.replaceAll('$job', 'mesh').replaceAll('$instance', '.*').replaceAll('$__rate_interval', '30s')
    expect(filled).not.toContain('$')
    const found = await prometheus.query(filled)
    expect(found.length).toBeGreaterThan(0)
  })

  test('each legend uses labels that the series have', async () => {
    const all = z
      .object({
        panels: z.array(
          z.object({ targets: z.array(z.object({ expr: z.string(), legendFormat: z.string() })).default([]) }),
        ),
      })
      .parse(JSON.parse(readFileSync(DASHBOARD, 'utf8')))
    for (const { expr, legendFormat } of all.panels.flatMap(({ targets }) => targets)) {
      const names = Array.from(legendFormat.matchAll(/\{\{(\w+)\}\}/g), ([, name = '']) => name)
      const filled = expr.replaceAll('$job', 'mesh').replaceAll('$instance', '.*').replaceAll('$__rate_interval', '30s')
      const found = names.length === 0 ? [] : await prometheus.query(filled)
      for (const { metric } of found) expect(Object.keys(metric)).toEqual(expect.arrayContaining(names))
    }
  })
})
