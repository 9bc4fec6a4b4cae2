import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import createMulticast, { type ResponsePacket } from 'multicast-dns'
import { systemClock } from '../../../src/node/clock.ts'
import { browseRadios } from '../../../src/node/radio/find/browse.ts'
import { listSerialDevices } from '../../../src/node/radio/find/serial-devices.ts'
import { START } from '../../support/app.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { announceRadios } from '../../support/radio/announced.ts'
import { freePort } from '../../support/servers/free-port.ts'

type Answer = NonNullable<ResponsePacket['answers']>[number]

const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

describe('radios that announce themselves', () => {
  it('are found with address and name, as another implementation announces them', async () => {
    endings.push(
      await announceRadios(
        [
          ['Meshtastic', 4403, { shortname: 'HILL', id: '!a0cb0001', pio_env: 'heltec-v3' }],
          ['Meshtastic on harbour', 4404, {}],
        ],
        ['127.0.0.1'],
      ),
    )
    const radios = await browseRadios(systemClock, { interface: '127.0.0.1' })
    // Other tests of this machine may announce theirs.
    const own = radios.filter(({ address }) => /^127\.0\.0\.1:440[34]$/.test(address))
    expect(own.toSorted((a, b) => (a.address < b.address ? -1 : 1))).toStrictEqual([
      { address: '127.0.0.1:4403', name: 'HILL', nodeId: '!a0cb0001' },
      { address: '127.0.0.1:4404', name: 'Meshtastic on harbour', nodeId: null },
    ])
  })

  it('are claims: bounded in number, and their names are cleaned', async () => {
    const port = await freePort()
    const clock = createManualClock(START)
    const browsing = browseRadios(clock, { interface: '127.0.0.1', port })
    const liar = createMulticast({ interface: '127.0.0.1', port, bind: '0.0.0.0' })
    endings.push(() => liar.destroy())
    const answer = (name: string, at: number, more: readonly Answer[] = []) =>
      liar.respond([
        { name: `${name}._meshtastic._tcp.local`, type: 'SRV', data: { port: at, target: `${name}.local` } },
        ...more,
      ])
    await once(liar, 'query')
    const texts = ['shortname=\u202eLLIH\u0000\n', 'id=!<script>', 'noise', '='].map((text) => Buffer.from(text))
    answer('text', 1000, [{ name: 'TEXT._meshtastic._tcp.local', type: 'TXT', data: texts }])
    answer('elsewhere', 1001, [{ name: 'elsewhere.local', type: 'A', data: '192.0.2.7' }])
    answer('of-another', 1002, [{ name: 'other.local', type: 'A', data: '192.0.2.8' }])
    answer('port-zero', 0)
    liar.respond([{ name: '_http._tcp.local', type: 'PTR', data: 'printer._http._tcp.local' }])
    liar.respond([{ name: 'printer._http._tcp.local', type: 'SRV', data: { port: 80, target: 'printer.local' } }])
    // A name alone is asked for its address.
    const asked = once(liar, 'query')
    liar.respond([{ name: '_meshtastic._tcp.local', type: 'PTR', data: 'later._meshtastic._tcp.local' }])
    const [{ questions }] = await asked
    expect(questions).toMatchObject([
      { name: 'later._meshtastic._tcp.local', type: 'SRV' },
      { name: 'later._meshtastic._tcp.local', type: 'TXT' },
    ])
    for (let at = 2000; at < 2200; at += 1) answer(`radio-${at}`, at)
    const last = once(liar, 'query')
    liar.respond([{ name: '_meshtastic._tcp.local', type: 'PTR', data: 'end._meshtastic._tcp.local' }])
    await last
    clock.advance(3000)
    const found = await browsing
    expect(found).toHaveLength(50)
    expect(found.slice(0, 3)).toStrictEqual([
      { address: '127.0.0.1:1000', name: 'LLIH', nodeId: null },
      { address: '192.0.2.7:1001', name: 'elsewhere', nodeId: null },
      { address: '127.0.0.1:1002', name: 'of-another', nodeId: null },
    ])
    expect(found.some(({ address }) => /:(?:0|80)$/.test(address))).toBe(false)
  })

  it('are read from the first 200 records of a datagram only', async () => {
    const port = await freePort()
    const clock = createManualClock(START)
    const browsing = browseRadios(clock, { interface: '127.0.0.1', port })
    const liar = createMulticast({ interface: '127.0.0.1', port, bind: '0.0.0.0' })
    endings.push(() => liar.destroy())
    await once(liar, 'query')
    const service = (name: string, at: number): Answer => ({ name, type: 'SRV', data: { port: at, target: 'a.local' } })
    const fill = Array.from({ length: 199 }, (_, n) => service(`printer-${n}._http._tcp.local`, 80))
    liar.respond([...fill, service('in._meshtastic._tcp.local', 1000), service('out._meshtastic._tcp.local', 1001)])
    const last = once(liar, 'query')
    liar.respond([{ name: '_meshtastic._tcp.local', type: 'PTR', data: 'end._meshtastic._tcp.local' }])
    await last
    clock.advance(3000)
    expect(await browsing).toStrictEqual([{ address: '127.0.0.1:1000', name: 'in', nodeId: null }])
  })

  it('are none where the port cannot be used', async () => {
    const taken = createSocket('udp4')
    taken.bind(0)
    await once(taken, 'listening')
    endings.push(() => taken.close())
    const { port } = taken.address()
    expect(await browseRadios(createManualClock(START), { interface: '127.0.0.1', port })).toStrictEqual([])
  })
})

describe('serial devices', () => {
  async function makeFolder() {
    const folder = await mkdtemp(join(tmpdir(), 'mesh-dev-'))
    endings.push(() => rm(folder, { recursive: true }))
    return folder
  }

  it('are listed by the names that stay the same', async () => {
    const folder = await makeFolder()
    await mkdir(join(folder, 'serial/by-id'), { recursive: true })
    for (const name of ['ttyACM0', 'ttyUSB0', 'ttyS0', 'tty1']) await writeFile(join(folder, name), '')
    const id = 'usb-Silicon_Labs_CP2102_USB_to_UART_Bridge_Controller_0001-if00-port0'
    await symlink('../../ttyUSB0', join(folder, 'serial/by-id', id))
    expect(await listSerialDevices('linux', folder)).toStrictEqual([
      {
        device: join(folder, 'serial/by-id', id),
        name: 'Silicon Labs CP2102 USB to UART Bridge Controller 0001',
      },
      { device: join(folder, 'ttyACM0'), name: 'ttyACM0' },
    ])
  })

  it('are those that a container was given', async () => {
    const folder = await makeFolder()
    await writeFile(join(folder, 'ttyUSB0'), '')
    expect(await listSerialDevices('linux', folder)).toStrictEqual([
      { device: join(folder, 'ttyUSB0'), name: 'ttyUSB0' },
    ])
    expect(await listSerialDevices('linux', join(folder, 'nowhere'))).toStrictEqual([])
  })
})
