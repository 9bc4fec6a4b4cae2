import { readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { loadSerialPort } from '../transports/serial-port.ts'
import { cleanName } from './clean-name.ts'

/** Where Linux lists devices, and serial ones under names that stay the same. */
const DEVICES = '/dev'
const BY_ID = 'serial/by-id'
/** Serial ports on USB. Others, such as a console, are not offered. */
const ON_USB = /^tty(?:ACM|USB)\d+$/

const MAX_DEVICES = 50

/** `device`: the path to connect to; `name`: what the device says about itself, for people. */
export type SerialDevice = { readonly device: string; readonly name: string }

/** The serial devices on USB of this machine; none where there are none. */
export async function listSerialDevices(platform = process.platform, folder = DEVICES): Promise<SerialDevice[]> {
  // The library asks a program for them on Linux, which containers lack.
  const found = platform === 'linux' ? await readDevices(folder) : await listPorts()
  return found.slice(0, MAX_DEVICES).map(({ device, name }) => ({ device, name: cleanName(name) }))
}

async function readDevices(folder: string): Promise<SerialDevice[]> {
  const [ids, all] = await Promise.all([readNames(join(folder, BY_ID)), readNames(folder)])
  const named = await Promise.all(
    ids.map(async (id) => {
      const device = join(folder, BY_ID, id)
      return { device, name: readable(id), target: await realpath(device).catch(() => device) }
    }),
  )
  // A container has only the device that it was given, without its other names.
  const targets = new Set(named.map(({ target }) => target))
  const others = all.filter((name) => ON_USB.test(name) && !targets.has(join(folder, name)))
  return [...named, ...others.map((name) => ({ device: join(folder, name), name }))]
}

async function readNames(folder: string): Promise<string[]> {
  const names: string[] = await readdir(folder).catch(() => [])
  return names.toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }))
}

/** `usb-Silicon_Labs_CP2102-if00-port0` without what is not for people. */
function readable(id: string): string {
  return id
    .replace(/^usb-/, '')
    .replace(/(?:-(?:if|port)\d+)+$/, '')
    .replaceAll('_', ' ')
}

async function listPorts(): Promise<SerialDevice[]> {
  const Port = await loadSerialPort()
  const ports = Port === 'unsupported' ? [] : await Port.list().catch(() => [])
  return ports
    .filter(({ vendorId }) => vendorId !== undefined)
    .map(({ path, manufacturer }) => ({ device: path, name: manufacturer ?? path }))
}
