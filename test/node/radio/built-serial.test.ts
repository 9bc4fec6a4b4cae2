import { mkdtempSync, rmSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { buildService, signInAt, startService } from '../../support/built/built-service.ts'
import { fromRadio, smallHandshake, startRadioDevice } from '../../support/radio/device.ts'
import { startSerialLine } from '../../support/radio/serial-line.ts'

const PASSWORD = 'three radios on one hill'

const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

test('the built service has the library of serial ports and its binary', async () => {
  const lora = fromRadio({ case: 'config', value: { payloadVariant: { case: 'lora', value: { usePreset: true } } } })
  const radio = await startRadioDevice({ handshake: (nonce) => [...smallHandshake(nonce).slice(0, -1), lora] })
  const line = await startSerialLine(radio.port)
  endings.push(
    () => radio.stop(),
    () => line.stop(),
  )
  const data = mkdtempSync(join(tmpdir(), 'mesh-serial-data-'))
  const service = await startService(buildService(), { ADMIN_PASSWORD: PASSWORD, DATA_DIR: data })
  endings.push(async () => {
    await service.stop('SIGTERM')
    rmSync(data, { recursive: true })
  })
  const cookie = await signInAt(service.url, PASSWORD)
  const answer = await fetch(`${service.url}/api/connections/test`, {
    method: 'POST',
    headers: { cookie, 'content-type': 'application/json' },
    body: JSON.stringify({ kind: 'serial', settings: { device: await realpath(line.device) } }),
  })
  expect([answer.status, await answer.json()]).toMatchObject([
    200,
    { problem: null, radio: { longName: 'Test Radio', firmwareVersion: '2.8.0.test' } },
  ])
})
