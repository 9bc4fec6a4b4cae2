import { afterEach, expect, it } from 'vitest'
import { LORA, startRadioService, until } from '../../support/radio/service.ts'
import { fromRadio } from '../../support/radio/device.ts'

const NODES = 2000

const endings: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const end of endings.splice(0)) await end()
})

it('all 2000 nodes of a radio are listed after it connects, each with its reported data', async () => {
  const nums = Array.from({ length: NODES }, (_, n) => 5000 + n * 7919)
  const told = nums.map((num, n) =>
    fromRadio({
      case: 'nodeInfo',
      value: {
        num,
        user: { longName: `Node ${n}`, shortName: `${n}`, publicKey: new Uint8Array(32).fill(n) },
        position: { latitudeI: 500_000_000 + n, longitudeI: 100_000_000 - n, time: 1_768_478_000 },
        deviceMetrics: { batteryLevel: n % 101 },
      },
    }),
  )
  const service = await startRadioService([LORA, ...told])
  endings.push(() => service.stop())
  const admin = await service.app.admin()
  const list = async (): Promise<Record<string, unknown>[]> =>
    Object(await (await admin.send('GET', '/api/nodes?limit=5000')).json())
  await until(async () => {
    service.clock.advance(100)
    expect(service.radio.waiting()).toBe(0)
    expect(await list()).toHaveLength(NODES + 2)
  })
  const byNum = new Map((await list()).map((node) => [node['nodeNum'], node]))
  for (const [n, num] of nums.entries()) {
    expect(byNum.get(num)).toMatchObject({
      longName: `Node ${n}`,
      position: { latitude: (500_000_000 + n) / 1e7 },
      deviceMetrics: { batteryLevel: n % 101 },
    })
  }
})
