import { expect, test } from 'vitest'
import { SCENARIO_ENV, type Service } from '../contract/service.ts'
import { fuzzSharing } from '../contract/sharing-fuzz.ts'
import { openWorkerd } from '../edge/workerd.ts'
import { openNodeService } from '../support/servers/node-service.ts'
import { figure } from './figures.ts'

const MESHES = Number(process.env['SHARING_MESHES'] ?? 1000)
const LONGEST_MS = 60 * 60_000

const RUNTIMES: readonly [string, () => Promise<Service>][] = [
  ['Node', () => openNodeService(SCENARIO_ENV)],
  ['workerd', () => openWorkerd(SCENARIO_ENV)],
]

test.each(RUNTIMES)(
  'on %s everybody finds exactly what is meant for them in a thousand random meshes',
  async (runtime, open) => {
    const service = await open()
    const began = performance.now()
    const told = await fuzzSharing(service, MESHES, (round) => {
      if (round % 50 === 49) figure(`meshes so far on ${runtime}`, 2 * (round + 1))
    })
    await service.close()
    figure(`meshes with their scopes on ${runtime}`, told.meshes)
    figure(`items and answers on ${runtime}`, `${told.items} in ${told.answers}`)
    figure(`seconds on ${runtime}`, Math.round((performance.now() - began) / 1000))
    expect(told.findings).toEqual([])
    expect(told.meshes).toBe(MESHES)
  },
  LONGEST_MS,
)
