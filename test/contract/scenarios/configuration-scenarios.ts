import { expect, test } from 'vitest'
import { auditOf, type Client, makeUser, refusal, signIn } from '../service.ts'

const SOURCE = '192.0.2.77:4403'

/** The stored settings of a radio, wherever the radio is. */
export function configurationScenarios(admin: () => Client): void {
  test('without any radio there are no settings', async () => {
    const overview = await admin().send('GET', '/api/configuration')
    expect([overview.status, overview.body]).toStrictEqual([
      200,
      { source: null, sources: [], nodeNum: null, editable: false, byCollector: false, sections: [], lastChange: null },
    ])
    expect(await admin().send('GET', '/api/configuration/lora')).toMatchObject(refusal(404, 'source_not_found'))
  })

  test('stored settings can be read where the radio is not', async () => {
    await rememberSettings(admin())
    const overview = await admin().send('GET', '/api/configuration')
    expect(overview.body).toMatchObject({
      source: SOURCE,
      sources: [SOURCE],
      nodeNum: 2697723905,
      editable: false,
      sections: [
        { section: 'lora', kind: 'config', readAt: 5, lastChange: { state: 'differs', differing: ['region'] } },
        { section: 'network', kind: 'config', readAt: 6, lastChange: null },
      ],
      lastChange: { section: 'lora', by: 'somebody', at: 7, settledAt: 8 },
    })
    const query = `source=${encodeURIComponent(SOURCE)}`
    expect((await admin().send('GET', `/api/configuration/network?${query}`)).body).toMatchObject({
      editable: false,
      revision: null,
      values: { wifiSsid: 'home' },
      secrets: { wifiPsk: { isSet: true, kind: null } },
      fields: expect.arrayContaining([
        expect.objectContaining({ path: 'wifiSsid', type: 'string', maxBytes: 32, risk: 'link' }),
        expect.objectContaining({ path: 'addressMode', type: 'enum', options: ['DHCP', 'STATIC'] }),
      ]),
      regionPresets: [],
      renewals: [{ path: 'wifiSsid', value: null, secret: 'wifiPsk' }],
    })
    expect(await admin().send('GET', '/api/configuration/mqtt')).toMatchObject(refusal(404, 'section_not_found'))
    expect(await admin().send('GET', '/api/configuration?source=x')).toMatchObject(refusal(404, 'source_not_found'))
  })

  test('stored settings cannot be changed where the radio is not, and nothing is stored', async () => {
    const answer = await admin().send('PUT', '/api/configuration/lora', { values: { hopLimit: 4 } })
    expect(['unsupported_on_this_runtime', 'radio_unavailable']).toContain(Object(answer.body).code)
    expect([501, 503]).toContain(answer.status)
    expect(await admin().send('PUT', '/api/configuration/lora', { what: 1 })).toMatchObject(
      refusal(400, 'invalid_request'),
    )
    expect(await auditOf(admin(), 'configuration_updated')).toStrictEqual([])
  })

  test('reading stored settings needs the permission', async () => {
    await makeUser(admin(), 'curious')
    const curious = await signIn(admin().service, 'curious')
    for (const path of ['', '/lora', '/nonsense']) {
      expect(await curious.send('GET', `/api/configuration${path}`)).toMatchObject(refusal(403, 'forbidden'))
    }
  })
}

/** Stores what a collector's owner moved here: settings of a radio that is not connected. */
export async function rememberSettings({ service }: Client): Promise<void> {
  await service.sql(
    `insert into sources (kind, name, local_node_num, created_at) values ('tcp', '${SOURCE}', 2697723905, 1)`,
  )
  const id = `(select id from sources where name = '${SOURCE}')`
  const network = `'{"wifiSsid":"home"}', '{"wifiPsk":{"isSet":true,"kind":null}}'`
  await service.sql(
    `insert into device_config values (${id}, 'network', ${network}, 6), (${id}, 'lora', '{"region":"US"}', '{}', 5)`,
  )
  await service.sql(
    `insert into device_config_changes (source_id, section, id, state, fields, differing, reason, requested_at, requested_by, settled_at)
      values (${id}, 'lora', 'an id', 'differs', '["region"]', '["region"]', 'other values', 7, 'somebody', 8)`,
  )
}
