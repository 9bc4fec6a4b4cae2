import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { networkFileSystem, recogniseNetwork } from '../../../src/node/disk/network.ts'
import {
  buildCli,
  type Built,
  buildService,
  runCli,
  runToEnd,
  startService,
} from '../../support/built/built-service.ts'
import { canMountNetwork, mountNetwork } from '../../support/servers/sshfs.ts'

const FUSE = 0x65735546
const EXT = 0xef53

// Lines as the kernel prints them; the first one is the example of proc_pid_mountinfo(5).
const MOUNTS = `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
26 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw,errors=remount-ro
24 26 0:22 / /proc rw,nosuid,nodev,noexec,relatime shared:13 - proc proc rw
95 26 0:52 / /srv rw,relatime shared:48 - autofs systemd-1 rw,fd=47,pgrp=1,timeout=0,minproto=5,maxproto=5,direct
611 95 0:57 / /srv rw,relatime shared:330 - nfs4 nas.example.org:/export rw,vers=4.2,rsize=1048576,hard,proto=tcp
612 26 0:58 / /mnt/old rw,relatime shared:331 - nfs 192.0.2.7:/old rw,vers=3,hard,proto=tcp,mountproto=udp
613 611 8:17 / /srv/local rw,relatime shared:332 - xfs /dev/sdb1 rw,attr2,inode64,noquota
620 26 0:61 / /media/the\\040share rw,relatime shared:340 - cifs //nas/share rw,vers=3.1.1,username=mesh
621 26 0:62 / /mnt/windows rw,noatime - 9p C:\\134 rw,aname=drvfs;path=C:\\;uid=1000,access=client,msize=65536,trans=fd
622 26 0:63 / /mnt/ssh rw,nosuid,nodev,relatime - fuse.sshfs x:/srv/mesh rw,user_id=0,group_id=0
623 26 0:64 / /mnt/bucket rw,nosuid,nodev,relatime - fuse.rclone remote:mesh rw,user_id=0,group_id=0
624 26 0:65 / /mnt/gluster rw,relatime - fuse.glusterfs a:/vol0 rw,user_id=0,group_id=0,default_permissions
625 26 0:66 / /mnt/pool rw,relatime - fuse.mergerfs a:b rw,user_id=0,group_id=0,allow_other
626 26 8:33 / /mnt/stick rw,relatime - fuseblk /dev/sdc1 rw,user_id=0,group_id=0,blksize=4096
627 26 0:67 / /mnt/ceph rw,relatime - ceph 192.0.2.8:6789:/ rw,name=admin,secret=<hidden>,acl
628 26 0:68 / /mnt/vm rw,relatime - virtiofs shared rw
`

test.each([
  ['/srv/mesh', 0x6969, 'nfs4'],
  ['/srv', 0x6969, 'nfs4'],
  ['/mnt/old/data', 0x6969, 'nfs'],
  ['/media/the share', 0xff534d42, 'cifs'],
  ['/media/the share/mesh', -11317950, 'cifs'],
  ['/mnt/windows/mesh', 0x01021997, '9p'],
  ['/mnt/ssh/mesh', FUSE, 'fuse.sshfs'],
  ['/mnt/bucket', FUSE, 'fuse.rclone'],
  ['/mnt/gluster/mesh', FUSE, 'fuse.glusterfs'],
  ['/mnt/ceph', 0x00c36400, 'ceph'],
])('%s is on a network file system', (path, magic, type) => {
  expect(recogniseNetwork({ path, magic, mounts: MOUNTS })).toBe(type)
})

test.each([
  ['/var/lib/mesh', EXT],
  ['/srv/local/mesh', 0x58465342],
  // Only the beginning of its name is that of a mount.
  ['/mnt/sshd', EXT],
  ['/mnt/pool/mesh', FUSE],
  ['/mnt/stick', FUSE],
  ['/mnt/vm', FUSE],
])('%s is on a local one', (path, magic) => {
  expect(recogniseNetwork({ path, magic, mounts: MOUNTS })).toBeNull()
})

test('without a table of mounts the number decides, and FUSE counts as local', () => {
  const names = [0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x01021997, 0x00c36400, 0x6b414653, FUSE, EXT].map((magic) =>
    recogniseNetwork({ path: '/data', magic, mounts: null }),
  )
  expect(names).toStrictEqual(['nfs', 'smb', 'cifs', 'smb3', '9p', 'ceph', 'afs', null, null])
})

test('a path that does not exist yet counts as its nearest directory', () => {
  expect(networkFileSystem(join(tmpdir(), 'mesh-not-there', 'deeper', 'mesh.db'))).toBeNull()
})

describe.skipIf(!canMountNetwork)('on a mounted sshfs', () => {
  let built: Built
  beforeAll(() => {
    built = buildService()
  })
  let disk: ReturnType<typeof mountNetwork>
  let local: string
  beforeEach(() => {
    disk = mountNetwork()
    local = mkdtempSync(join(tmpdir(), 'mesh-local-'))
  })
  afterEach(() => {
    disk.remove()
    rmSync(local, { recursive: true })
  })

  const REFUSAL = (dir: string) =>
    `DATA_DIR: found ${JSON.stringify(dir)} on a network file system (fuse.sshfs), expected a disk of this machine because SQLite's locks and the shared memory of its log do not work across hosts; move it to a local disk, or set ALLOW_NETWORK_FILE_SYSTEM=true if only this host ever opens it\n`

  test('a start is refused in one line and changes nothing, unless a variable allows it with a warning', async () => {
    const dir = join(disk.dir, 'data')
    expect(await runToEnd(built, { DATA_DIR: dir })).toStrictEqual({ code: 1, out: '', err: REFUSAL(dir) })
    expect(existsSync(dir)).toBe(false)
    const service = await startService(built, { DATA_DIR: dir, ALLOW_NETWORK_FILE_SYSTEM: 'true' })
    expect(await service.stop('SIGTERM')).toBe(0)
    const entries = service.lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line))
    const warnings = entries.filter(({ level }) => level === 'warn')
    expect(warnings).toStrictEqual([
      expect.objectContaining({
        message: 'DATA_DIR is on a network file system: a second host that opens the database damages it',
        type: 'fuse.sshfs',
      }),
    ])
  })

  test('a link to a database there is refused, too; commands that open the database are, and reading a backup is not', async () => {
    const [there, dir] = [join(disk.dir, 'there'), join(local, 'data')]
    mkdirSync(dir)
    const allowed = { DATA_DIR: there, ALLOW_NETWORK_FILE_SYSTEM: 'true' }
    await (await startService(built, allowed)).stop('SIGTERM')
    symlinkSync(join(there, 'mesh.db'), join(dir, 'mesh.db'))
    expect(await runToEnd(built, { DATA_DIR: dir })).toMatchObject({ code: 1, err: REFUSAL(dir) })
    const cli = buildCli()
    const made = await runCli(cli, ['backup'], allowed)
    const [, name = ''] = /(\d{4}-\d\d-\d\d_\d{6}): /.exec(made.out) ?? []
    expect(made).toMatchObject({ code: 0, err: expect.stringContaining('DATA_DIR is on a network file system') })
    for (const args of [['list'], ['audit', 'verify'], ['backup'], ['restore', name]]) {
      const refused = await runCli(cli, args, { DATA_DIR: there })
      expect([args, refused]).toStrictEqual([args, { code: 1, out: '', err: REFUSAL(there) }])
    }
    expect(await runCli(cli, ['verify', name], { DATA_DIR: there })).toMatchObject({ code: 0 })
  })

  test('backups may be on one', async () => {
    symlinkSync(disk.dir, join(local, 'system-backups'))
    await (await startService(built, { DATA_DIR: local })).stop('SIGTERM')
    const { code, err } = await runCli(buildCli(), ['backup'], { DATA_DIR: local })
    expect([code, err]).toStrictEqual([0, ''])
    expect(readdirSync(disk.dir)).toStrictEqual([expect.stringMatching(/^\d{4}-\d\d-\d\d_\d{6}$/)])
  })
})
