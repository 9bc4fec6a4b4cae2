// What every other list costs, so that none becomes slow unseen; and a board of charts.
import { get, type Reader, routesOf } from '../load/routes.ts'
import { CHARTED } from '../seed.ts'
import { PASSWORD, readCpu, signInPeople, startService } from '../servers/processes.ts'
import { median, report, reportFailure } from '../table.ts'
import { DAY_MS } from '../../src/shared/time.ts'
import { cost, PEOPLE } from './compare.ts'

const WARM = 500
const LOADS = 7
const BOARD_MS = 100

export async function measureEveryList(dataDir: string): Promise<void> {
  const service = await startService(dataDir, { ADMIN_PASSWORD: PASSWORD })
  try {
    const cookies = await signInPeople(dataDir, service.port, PEOPLE)
    const reader = { service, cookie: cookies[0] ?? '' }
    await measureBoard(reader)
    for (const path of await routesOf(reader)) {
      if (!(await isList(reader, path))) continue
      await cost(`GET ${path}`, null, { server: service, path, cookies }, WARM).catch((error: unknown) =>
        reportFailure(`GET ${path}`, error),
      )
    }
  } finally {
    await service.stop()
  }
}

/** Whether it answers with a list that is not empty. */
async function isList(reader: Reader, path: string): Promise<boolean> {
  const answer = await get(reader, path)
  const text = await answer.text()
  if (!answer.ok || !(answer.headers.get('content-type') ?? '').includes('json') || path.endsWith('openapi.json')) {
    return false
  }
  const json: unknown = JSON.parse(text)
  return [json, ...Object.values(Object(json))].some((field) => Array.isArray(field) && field.length > 0)
}

/** One chart of ten nodes over a year, as the page loads it. */
async function measureBoard(reader: Reader): Promise<void> {
  const nodes = Array.from({ length: CHARTED }, (_, n) => 2_000_000_000 + (n + 1) * 7919)
  const chart = { title: '', metrics: ['deviceMetrics.voltage'], nodes }
  const made = await fetch(`http://127.0.0.1:${reader.service.port}/api/boards`, {
    method: 'POST',
    headers: { cookie: reader.cookie, 'content-type': 'application/json' },
    body: JSON.stringify({ name: `Board ${Date.now()}`, charts: [chart] }),
  })
  if (made.status !== 201) throw new Error(`board: ${made.status} ${await made.text()}`)
  const path = `/api/boards/${Object(await made.json()).board.id}`
  const to = Date.now()
  const range = `from=${to - 365 * DAY_MS}&to=${to}`
  const times: { cpu: number; seen: number }[] = []
  for (let n = 0; n < LOADS; n++) {
    const [before, begun] = [await readCpu(reader.service), performance.now()]
    const charts = nodes.map((node) => `/api/telemetry?nodeId=${node}&metric=deviceMetrics.voltage&${range}`)
    for (const asked of [[path], charts]) {
      await Promise.all(
        asked.map(async (each) => {
          const answer = await get(reader, each)
          if (!answer.ok) throw new Error(`${each}: ${answer.status}`)
          await answer.arrayBuffer()
        }),
      )
    }
    times.push({ seen: performance.now() - begun, cpu: ((await readCpu(reader.service)) - before) / 1000 })
  }
  const [cpu, seen] = [median(times.map((each) => each.cpu)), median(times.map((each) => each.seen))]
  report(
    `a board of ${CHARTED} nodes over a year`,
    `${cpu.toFixed(1)} ms, ${seen.toFixed(1)} ms seen`,
    `≤ ${BOARD_MS} ms`,
    cpu <= BOARD_MS && seen <= BOARD_MS,
  )
  const deleted = await get(reader, path, 'DELETE')
  if (!deleted.ok) throw new Error(`board: ${deleted.status}`)
}
