import { create } from '@bufbuild/protobuf'
import { afterEach, describe, expect, it } from 'vitest'
import { ModuleConfigSchema } from '../../../../src/meshtastic/gen/module_config_pb.ts'
import { auditRows } from '../../../support/app.ts'
import { start, stopServices } from '../../../support/radio/config-service.ts'
import { until } from '../../../support/radio/service.ts'

afterEach(stopServices)

const secureMqtt = () =>
  create(ModuleConfigSchema, {
    payloadVariant: { case: 'mqtt', value: { address: 'mqtt.example.org', password: 'mqtt secret', tlsEnabled: true } },
  })
const renewalOf = (path: string) => ({
  path,
  value: path === 'tlsEnabled' ? false : null,
  secret: path === 'wifiSsid' ? 'wifiPsk' : 'password',
})
const elsewhere = (section: string) => (section === 'mqtt' ? { address: 'third.example' } : { wifiSsid: 'third' })

describe('a change', () => {
  it.each([
    ['mqtt', { values: { address: 'mqtt.example.com' } }, 'password', []],
    ['mqtt', { values: { address: 'mqtt.example.org:8883', root: 'x' } }, 'password', []],
    ['mqtt', { values: { address: '' } }, 'password', []],
    ['mqtt', { values: { tlsEnabled: false } }, 'password', []],
    ['network', { values: { wifiSsid: 'elsewhere' } }, 'wifiPsk', ['wifiSsid', 'wifiPsk']],
  ])('of %s %j must not send a stored secret elsewhere', async (section, body, secret, confirm) => {
    const service = await start()
    service.device.active.modules.set('mqtt', secureMqtt())
    service.device.kick()
    await until(() => expect(service.radio.links()[0]?.state).not.toBe('connected'))
    await service.untilConnected(500)
    const { length } = auditRows(service.app)
    const path = `/api/configuration/${section}`
    const { renewals } = await service.read(section)
    expect(renewals).toEqual(
      expect.arrayContaining(Object.keys(body.values).flatMap((name) => (name === 'root' ? [] : [renewalOf(name)]))),
    )
    const refused = await service.ask('PUT', path, { ...body, confirm })
    expect([refused.status, refused.body['code']]).toStrictEqual([409, 'secret_required'])
    expect(refused.body['issues']).toStrictEqual([{ path: `secrets.${secret}`, message: expect.any(String) }])
    expect(refused.body['detail']).toContain(`secrets.${secret}: `)
    expect([service.device.packets, auditRows(service.app).length]).toStrictEqual([[], length])
    expect((await service.read(section))['lastChange']).toBeNull()
    await service.change(section, { ...body, secrets: { [secret]: null }, confirm })
    expect(await service.outcome(section, 500)).toMatchObject({ state: 'applied' })
    await service.untilConnected(500)
    // The secret has been cleared, so nothing could be sent elsewhere.
    await service.change(section, { values: { ...body.values, ...elsewhere(section) }, confirm })
    expect(await service.outcome(section, 500)).toMatchObject({ state: 'applied' })
  })

  it('of the broker is sent if it has a new password', async () => {
    const service = await start()
    const secrets = { password: 'for the other one' }
    await service.change('mqtt', { values: { address: 'mqtt.example.com' }, secrets })
    expect(await service.outcome('mqtt', 500)).toMatchObject({ state: 'applied', fields: ['address', 'password'] })
    expect(service.device.saved.modules.get('mqtt')?.payloadVariant.value).toMatchObject({
      address: 'mqtt.example.com',
      password: 'for the other one',
    })
    await service.untilConnected(500)
    // With TLS, or with another user name at the same broker, it goes to the same place.
    await service.change('mqtt', { values: { tlsEnabled: true, username: 'other', root: 'msh/X' } })
    expect(await service.outcome('mqtt', 500)).toMatchObject({ state: 'applied' })
  })
})
