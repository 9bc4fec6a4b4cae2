import { afterEach, describe, expect, it } from 'vitest'
import { auditRows } from '../../../support/app.ts'
import { start, stopServices } from '../../../support/radio/config-service.ts'

afterEach(stopServices)

describe('flags of a radio', () => {
  it('are changed by name, and unnamed bits are kept', async () => {
    const service = await start()
    expect(await service.read('position')).toMatchObject({
      values: { positionFlags: ['ALTITUDE', 'ALTITUDE_MSL', 'UNKNOWN_10'] },
      fields: expect.arrayContaining([
        expect.objectContaining({
          path: 'positionFlags',
          type: 'flags',
          list: false,
          options: expect.arrayContaining(['ALTITUDE', 'SPEED']),
        }),
      ]),
    })
    const { length } = auditRows(service.app)
    for (const positionFlags of [0x401, ['ALTITUDE', 'UNKNOWN_11'], 'ALTITUDE']) {
      const { status, body } = await service.ask('PUT', '/api/configuration/position', { values: { positionFlags } })
      expect([status, body['code'], body['issues']]).toMatchObject([
        400,
        'invalid_request',
        [{ path: 'values.positionFlags' }],
      ])
    }
    expect(auditRows(service.app)).toHaveLength(length)
    await service.change('position', { values: { positionFlags: ['SPEED', 'ALTITUDE'] } })
    expect(await service.outcome('position', 500)).toMatchObject({ state: 'applied', fields: ['positionFlags'] })
    expect(service.device.saved.configs.get('position')?.payloadVariant.value).toMatchObject({ positionFlags: 0x601 })
    expect(auditRows(service.app).at(-1)?.details).toMatchObject({
      before: { positionFlags: ['ALTITUDE', 'ALTITUDE_MSL', 'UNKNOWN_10'] },
      after: { positionFlags: ['ALTITUDE', 'SPEED', 'UNKNOWN_10'] },
    })
  })
})
