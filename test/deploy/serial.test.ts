import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

const ROOT = new URL('../../', import.meta.url)

test('the addition to the systemd unit opens serial ports on USB, and no other devices', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-unit-'))
  const unit = join(dir, 'mesh-monitoring-service.service')
  copyFileSync(new URL('deploy/mesh-monitoring-service.service', ROOT), unit)
  const rate = () => {
    const asked = ['security', '--offline=yes', '--json=short', unit]
    const told: { json_field: string; description: string }[] = JSON.parse(
      execFileSync('systemd-analyze', asked, {
        env: { ...process.env, SYSTEMD_UNIT_PATH: `${dir}:` },
        encoding: 'utf8',
      }),
    )
    return new Map(told.map(({ json_field: name, description }) => [name, description]))
  }
  const before = rate()
  expect(before.get('DeviceAllow')).not.toContain('char-tty')
  mkdirSync(`${unit}.d`)
  copyFileSync(new URL('deploy/mesh-monitoring-service.serial.conf', ROOT), join(`${unit}.d`, 'serial.conf'))
  const after = rate()
  expect(after.get('DeviceAllow')).toMatch(/ACL with some special devices:.* char-ttyUSB:rw char-ttyACM:rw/)
  const changed = [...after].filter(([name, description]) => before.get(name) !== description).map(([name]) => name)
  expect(changed.toSorted()).toStrictEqual(['DeviceAllow', 'PrivateDevices', 'SupplementaryGroups'])
  rmSync(dir, { recursive: true })
})

test('the lines for a radio on USB in compose.yaml are what the documentation says', () => {
  const text = readFileSync(new URL('compose.yaml', ROOT), 'utf8')
  const { mesh } = parse(text.replaceAll(/^( +)# (devices|group_add):/gm, '$1$2:')).services
  expect(mesh.devices).toStrictEqual(['/dev/serial/by-id/usb-…:/dev/ttyUSB0'])
  expect(mesh.group_add).toStrictEqual(['20'])
  const page = readFileSync(new URL('docs/connections.md', ROOT), 'utf8')
  expect(page).toContain(`--device ${mesh.devices[0]} --group-add ${mesh.group_add[0]} `)
})
