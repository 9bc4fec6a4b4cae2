import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { endProcess } from './end-process.ts'
import { freePort } from './free-port.ts'

const SERVER = '/usr/sbin/nginx'

export type Nginx = { readonly url: string; readonly process: ChildProcess; stop(): Promise<void> }

/** A real nginx on a loopback port that passes requests to the services at `urls`, in turn. */
export async function startNginx(urls: readonly string[]): Promise<Nginx> {
  if (!existsSync(SERVER)) {
    throw new Error(`${SERVER} is missing and these tests need it: apt-get install -y nginx-light`)
  }
  const port = await freePort()
  const dir = mkdtempSync(join(tmpdir(), 'mesh-nginx-'))
  const file = join(dir, 'nginx.conf')
  writeFileSync(file, configuration(dir, port, urls))
  const child = spawn(SERVER, ['-p', dir, '-c', file], { stdio: ['ignore', 'inherit', 'inherit'] })
  await accepts(port, child)
  return {
    url: `http://127.0.0.1:${port}`,
    process: child,
    stop: async () => {
      await endProcess(child, 'SIGTERM')
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

function configuration(dir: string, port: number, urls: readonly string[]): string {
  const servers = urls.map((url) => `server ${new URL(url).host} max_fails=1 fail_timeout=1s;`).join('\n    ')
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${dir}/${name};`)
  return `daemon off;
master_process off;
pid ${dir}/nginx.pid;
error_log stderr crit;
events {}
http {
  access_log off;
  ${paths.join('\n  ')}
  upstream mesh {
    ${servers}
  }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://mesh;
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-Host $http_host;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 1h;
    }
  }
}
`
}

export async function accepts(port: number, child: ChildProcess): Promise<void> {
  const isOpen = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1')
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
  while (!(await isOpen())) {
    if (child.exitCode !== null) throw new Error('nginx ended')
    await setTimeout(20)
  }
}
