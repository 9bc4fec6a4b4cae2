import { createServer, type Server } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ADMIN_PASSWORD, type Client, SCENARIO_ENV, signIn } from '../contract/service.ts'
import { portOf } from '../support/servers/port-of.ts'
import { openWorkerd, type Workerd } from './workerd.ts'

let releases: Server
const asked: unknown[] = []
let workerd: Workerd
let admin: Client

beforeAll(async () => {
  releases = createServer((request, response) => {
    asked.push([request.method, request.headers['user-agent'], request.headers.cookie])
    response.end('{"tag_name":"v99.0.0"}')
  })
  await new Promise<void>((resolve) => releases.listen(0, '127.0.0.1', resolve))
  const UPDATE_CHECK_URL = `http://127.0.0.1:${portOf(releases)}/latest`
  workerd = await openWorkerd({ ...SCENARIO_ENV, UPDATE_CHECK_URL })
  admin = await signIn(workerd, 'admin', ADMIN_PASSWORD)
})
afterAll(async () => {
  await workerd.close()
  releases.close()
})

const read = async () => Object((await admin.send('GET', '/api/system')).body)

test('the page System of the edge: the size of D1 against its limit, the runs of the triggers, a newer release', async () => {
  expect(await read()).toMatchObject({
    runs: [],
    instances: null,
    backups: { count: 0, running: null, enabled: false },
    storage: { limitBytes: 10_000_000_000, disk: null, forecast: null, samples: [] },
    problems: [{ code: 'backup_off' }],
  })
  await workerd.runSchedule()
  await workerd.runSchedule(new Date(), '5-55/10 * * * *')
  await workerd.runSchedule(new Date(), '8-58/10 * * * *')
  await workerd.runSchedule()
  const found = await read()
  expect(found).toMatchObject({
    runs: [
      { job: 'upkeep', ok: true },
      { job: 'retention', ok: true },
      { job: 'survey', ok: true },
    ],
    release: { latest: '99.0.0', isNewer: true, problem: null },
    problems: [{ code: 'backup_off' }, { code: 'release_newer', subject: '99.0.0' }],
  })
  for (const { at } of found.runs) expect(Math.abs(at - found.now)).toBeLessThan(60_000)
  const [sample] = found.storage.samples
  expect(found.storage.samples).toHaveLength(1)
  expect(sample.roomBytes).toBe(10_000_000_000 - sample.databaseBytes)
  expect(asked).toStrictEqual([['GET', 'mesh-monitoring-service', undefined]])
})

test('a trigger that fails or no longer fires is a problem', async () => {
  await workerd.sql('alter table sweeps rename to away')
  await expect(workerd.runSchedule(new Date(), '5-55/10 * * * *')).rejects.toThrow()
  await workerd.sql('alter table away rename to sweeps')
  expect((await read()).problems).toContainEqual({ code: 'job_late', severity: 'error', subject: 'retention' })
  await workerd.runSchedule(new Date(), '5-55/10 * * * *')
  const hourAgo = Date.now() - 3_600_000
  await workerd.sql(`update service_state set value = json_set(value, '$.upkeep.at', ${hourAgo}) where name = 'runs'`)
  expect((await read()).problems).toMatchObject([
    { code: 'job_late', subject: 'upkeep' },
    { code: 'backup_off' },
    { code: 'release_newer' },
  ])
})
