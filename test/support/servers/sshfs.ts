import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { canMount } from '../backup/small-disk.ts'

const SSHFS = '/usr/bin/sshfs'
const SERVER = '/usr/lib/openssh/sftp-server'

/** Only root may mount, and a container may have no FUSE. */
export const canMountNetwork = canMount && existsSync('/dev/fuse') && existsSync(SSHFS) && existsSync(SERVER)

/** A real network file system, whose server is a process of this machine. */
export function mountNetwork(): { readonly dir: string; remove(): void } {
  const root = mkdtempSync(join(tmpdir(), 'mesh-network-'))
  const [served, dir, ssh] = [join(root, 'served'), join(root, 'a mount'), join(root, 'ssh')]
  mkdirSync(served)
  mkdirSync(dir)
  // sshfs talks to the server through whatever this command connects it to.
  writeFileSync(ssh, `#!/bin/sh\nexec ${SERVER}\n`, { mode: 0o700 })
  execFileSync(SSHFS, ['-o', `ssh_command=${ssh}`, `host:${served}`, dir], { stdio: 'pipe' })
  return {
    dir,
    remove() {
      execFileSync('umount', ['-l', dir])
      rmSync(root, { recursive: true })
    },
  }
}
