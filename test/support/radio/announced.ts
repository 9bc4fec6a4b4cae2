import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { endProcess } from '../servers/end-process.ts'

/** Announces services with python-zeroconf, another implementation of multicast DNS, as WiFiAPClient.cpp does. */
const ANNOUNCE = `
import socket, sys, json
from zeroconf import ServiceInfo, Zeroconf
radios, interfaces = json.loads(sys.argv[1])
zeroconf = Zeroconf() if interfaces is None else Zeroconf(interfaces=interfaces)
for name, port, texts in radios:
    zeroconf.register_service(ServiceInfo('_meshtastic._tcp.local.', name + '._meshtastic._tcp.local.',
        addresses=[socket.inet_aton('127.0.0.1')], port=port, properties=texts, server='Meshtastic.local.'))
print('announced', flush=True)
sys.stdin.read()
`

/** Name, port on loopback, and TXT records. */
export type AnnouncedRadio = readonly [string, number, Record<string, string>]

/** Announces radios by mDNS, on all interfaces unless some are named; returns what ends that. Throws if it cannot. */
export async function announceRadios(
  radios: readonly AnnouncedRadio[],
  interfaces: readonly string[] | null = null,
): Promise<() => Promise<unknown>> {
  const child: ChildProcess = spawn('/usr/bin/python3', ['-c', ANNOUNCE, JSON.stringify([radios, interfaces])], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  if (child.stdout === null) throw new Error('no output')
  const lines = createInterface({ input: child.stdout })
  const [line] = await Promise.race([once(lines, 'line'), once(child, 'exit').then(() => ['ended'])])
  if (line !== 'announced') throw new Error('not announced')
  return () => endProcess(child, 'SIGKILL')
}
