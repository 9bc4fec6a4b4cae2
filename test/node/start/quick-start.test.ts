import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { buildService, type Built, signInAt, startService } from '../../support/built/built-service.ts'
import { type RadioDevice, startRadioDevice } from '../../support/radio/device.ts'
import { readRadio } from '../../support/radio/recorded.ts'

const README = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8')

let built: Built
let device: RadioDevice
let dir: string

beforeEach(async () => {
  built = buildService()
  device = await startRadioDevice({ handshake: readRadio('node-B').handshake })
  dir = mkdtempSync(join(tmpdir(), 'mesh-quick-start-'))
})

afterEach(async () => {
  await device.stop()
  rmSync(dir, { recursive: true })
})

test('the first five minutes of the README work word for word, with a radio connected', async () => {
  const [start, calls] = [...README.matchAll(/```sh\n(.*?)```/gs)].map(([, block]) => block ?? '').slice(1, 3)
  const password = /ADMIN_PASSWORD='([^']+)'/.exec(start ?? '')?.[1] ?? ''
  const service = await startService(built, {
    DATA_DIR: dir,
    ADMIN_PASSWORD: password,
    MESHTASTIC_TCP: `127.0.0.1:${device.port}`,
  })
  try {
    await device.next('wantConfigId')
    await untilNodes(service.url, password)
    const script = (calls ?? '').replace('http://localhost:8080', service.url)
    const { stdout } = await promisify(execFile)('bash', ['-euc', script], { cwd: dir })
    expect(stdout).toContain('"authenticated":false')
    expect(stdout).toContain('"username":"anna"')
    expect(stdout).toContain('"nodeId":"!796b94bf","nodeNum":2037093567,"longName":"Lab Node B"')
    expect(stdout).toMatch(
      /\]200\n\{.*"code":"forbidden".*"required":\{"resource":"messages","action":"read"\}\}403\n$/,
    )
  } finally {
    await service.stop('SIGTERM')
  }
})

async function untilNodes(url: string, password: string): Promise<void> {
  const cookie = await signInAt(url, password)
  await vi.waitFor(
    async () => {
      const answer = await fetch(`${url}/api/nodes`, { headers: { cookie } })
      expect(await answer.json()).toContainEqual(expect.objectContaining({ longName: 'Lab Node B' }))
    },
    { timeout: 60_000, interval: 100 },
  )
}
