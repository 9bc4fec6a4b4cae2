import { existsSync, readFileSync, realpathSync, statfsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { hasCode } from './error-code.ts'

/** What Linux knows about the file system under a path. */
type Found = {
  /** The real path, without symbolic links. */
  readonly path: string
  /** The field f_type of statfs(2). */
  readonly magic: number
  /** The text of /proc/self/mountinfo; null where there is none. */
  readonly mounts: string | null
}

/** Magic numbers of linux/magic.h, and of Lustre and GPFS, which are not part of Linux. */
const MAGIC: ReadonlyMap<number, string> = new Map([
  [0x6969, 'nfs'],
  [0x517b, 'smb'],
  [0xff534d42, 'cifs'],
  [0xfe534d42, 'smb3'],
  [0x01021997, '9p'],
  [0x00c36400, 'ceph'],
  [0x5346414f, 'afs'],
  [0x6b414653, 'afs'],
  [0x73757245, 'coda'],
  [0x564c, 'ncp'],
  [0x0bd00bd0, 'lustre'],
  [0x47504653, 'gpfs'],
])

/**
 * Programs behind FUSE that keep their files on another host: all of them have one magic number, shared with local ones
 * such as mergerfs and ntfs-3g. virtiofs is no network: only one kernel holds the locks.
 */
const NETWORK_FUSE: ReadonlySet<string> = new Set(
  (
    'sshfs rclone glusterfs s3fs ceph ceph-fuse juicefs seaweedfs mfs gcsfuse goofys geesefs mountpoint-s3 blobfuse ' +
    'blobfuse2 davfs davfs2 curlftpfs smbnetfs afpfs hdfs gvfsd-fuse google-drive-ocamlfuse beegfs vmhgfs-fuse'
  ).split(' '),
)

/** The network file system that holds a path, such as nfs4; null for a local one, and for one that is unknown. */
export function recogniseNetwork({ path, magic, mounts }: Found): string | null {
  const type = mounts === null ? null : typeOfMount(path, mounts)
  if (type?.startsWith('fuse.') === true) return NETWORK_FUSE.has(type.slice('fuse.'.length)) ? type : null
  // A file system may give its number as a signed one.
  const known = MAGIC.get(magic >>> 0)
  return known === undefined ? null : (type ?? known)
}

/** The type of the mount that holds a path: the longest of its prefixes, and of two at one place the later one. */
function typeOfMount(path: string, mounts: string): string | null {
  let found: { readonly at: string; readonly type: string } | null = null
  for (const line of mounts.split('\n')) {
    // proc_pid_mountinfo(5): optional fields stand before the hyphen, so their number varies.
    const [before = '', after = ''] = line.split(' - ')
    const at = before.split(' ')[4]?.replaceAll(/\\([0-7]{3})/g, (_, code) => String.fromCharCode(parseInt(code, 8)))
    const [type = ''] = after.split(' ')
    if (at === undefined || type === '' || !isWithin(path, at)) continue
    if (found === null || at.length >= found.at.length) found = { at, type }
  }
  return found?.type ?? null
}

function isWithin(path: string, directory: string): boolean {
  return directory === '/' || path === directory || path.startsWith(`${directory}/`)
}

/** The network file system on which a file is, or will be created; null for a local one. Only Linux tells. */
export function networkFileSystem(file: string): string | null {
  if (process.platform !== 'linux') return null
  let path = resolve(file)
  while (!existsSync(path) && dirname(path) !== path) path = dirname(path)
  try {
    return recogniseNetwork({ path: realpathSync(path), magic: statfsSync(path).type, mounts: readMounts() })
  } catch (error) {
    // Whoever opens the file says better why it can't be read.
    if (hasCode(error, 'ENOENT', 'EACCES', 'ENOTDIR', 'EIO', 'ENOTCONN', 'ELOOP', 'ESTALE')) return null
    throw error
  }
}

function readMounts(): string | null {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8')
  } catch {
    return null
  }
}
