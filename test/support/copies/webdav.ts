import { spawn } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endProcess } from '../servers/end-process.ts'
import { freePort } from '../servers/free-port.ts'
import { accepts } from '../servers/nginx.ts'
import { type Front, openFront } from './front.ts'

const SERVER = '/usr/sbin/nginx'
const MODULE = '/usr/lib/nginx/modules/ngx_http_dav_ext_module.so'

export const DAV_USER = 'mesh'
export const DAV_PASSWORD = 'a password of a WebDAV server'

export type WebDav = {
  readonly front: Front
  /** The folder that it serves. */
  readonly root: string
  /** Without the mark of the service. */
  files(folder: string): Map<string, Buffer>
  close(): Promise<void>
}

/** nginx with WebDAV, as Debian builds it, on a folder. `root`: an own one, if it is given. */
export async function startWebDav(given?: string): Promise<WebDav> {
  if (!existsSync(MODULE)) throw new Error(`${MODULE} is missing: apt-get install -y libnginx-mod-http-dav-ext`)
  const dir = mkdtempSync(join(tmpdir(), 'mesh-dav-'))
  const root = given ?? join(dir, 'root')
  if (given === undefined) mkdirSync(root)
  // Its workers run as another user.
  chmodSync(dir, 0o755)
  chmodSync(root, 0o777)
  const port = await freePort()
  const file = join(dir, 'nginx.conf')
  writeFileSync(join(dir, 'users'), `${DAV_USER}:{PLAIN}${DAV_PASSWORD}\n`)
  writeFileSync(file, configuration(dir, root, port))
  const child = spawn(SERVER, ['-p', dir, '-c', file], { stdio: ['ignore', 'inherit', 'inherit'] })
  await accepts(port, child)
  // MOVE compares the host of its destination with that of the request.
  const front = await openFront(port)
  return {
    front,
    root,
    files: (folder) => {
      const dir = join(root, folder)
      const names = (existsSync(dir) ? readdirSync(dir) : []).filter((name) => name !== '.mesh-copies')
      return new Map(names.map((name) => [name, readFileSync(join(dir, name))]))
    },
    async close() {
      await front.close()
      await endProcess(child, 'SIGTERM')
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

function configuration(dir: string, root: string, port: number): string {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${dir}/${name};`)
  return `load_module ${MODULE};
daemon off;
master_process off;
pid ${dir}/nginx.pid;
error_log stderr emerg;
events {}
http {
  access_log off;
  ${paths.join('\n  ')}
  dav_ext_lock_zone zone=locks:1m;
  server {
    listen 127.0.0.1:${port};
    client_max_body_size 0;
    location / {
      root ${root};
      auth_basic mesh;
      auth_basic_user_file ${dir}/users;
      dav_methods PUT DELETE MKCOL MOVE;
      dav_ext_methods PROPFIND OPTIONS;
    }
  }
}
`
}
