import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync, chmodSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endProcess } from '../servers/end-process.ts'
import { freePort } from '../servers/free-port.ts'
import { accepts } from '../servers/nginx.ts'

const SERVER = '/usr/sbin/nginx'
const MODULE = '/usr/lib/nginx/modules/ngx_http_dav_ext_module.so'

export type TlsPlaces = {
  readonly port: number
  /** The certificate of the authority, in PEM form. */
  readonly ca: string
  /** That of another one. */
  readonly otherCa: string
  close(): Promise<void>
}

/**
 * nginx with TLS: `*.s3.test` passes to the loopback server `s3Port`, `dav.test` is a folder, and `old.test` has an expired
 * certificate. Any other name gets the certificate of those.
 */
export async function startTlsPlaces(s3Port: number): Promise<TlsPlaces> {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-tls-'))
  const root = join(dir, 'root')
  mkdirSync(root)
  chmodSync(dir, 0o755)
  chmodSync(root, 0o777)
  const openssl = (words: string) => execFileSync('openssl', words.split(' '), { cwd: dir, stdio: 'ignore' })
  const key = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
  for (const name of ['ca', 'other']) {
    openssl(`req -x509 ${key} -days 2 -subj /CN=${name} -keyout ${name}.key -out ${name}.pem`)
  }
  const issue = (name: string, names: string, dates: string) => {
    const subject = names.split(',').map((one) => `DNS:${one}`)
    openssl(
      `req ${key} -subj /CN=${name} -addext subjectAltName=${subject.join()} -keyout ${name}.key -out ${name}.csr`,
    )
    openssl(`ca -batch -config ca.conf -in ${name}.csr -out ${name}.pem ${dates} -notext`)
  }
  writeFileSync(join(dir, 'index'), '')
  writeFileSync(join(dir, 'ca.conf'), AUTHORITY)
  issue('good', 's3.test,*.s3.test,dav.test', '-days 2')
  issue('old', 'old.test', '-startdate 20200101000000Z -enddate 20210101000000Z')
  const port = await freePort()
  writeFileSync(join(dir, 'nginx.conf'), configuration(dir, port, s3Port))
  const child = spawn(SERVER, ['-p', dir, '-c', join(dir, 'nginx.conf')], { stdio: ['ignore', 'inherit', 'inherit'] })
  await accepts(port, child)
  return {
    port,
    ca: readFileSync(join(dir, 'ca.pem'), 'utf8'),
    otherCa: readFileSync(join(dir, 'other.pem'), 'utf8'),
    async close() {
      await endProcess(child, 'SIGTERM')
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

const AUTHORITY = `[ca]
default_ca = own
[own]
database = index
new_certs_dir = .
certificate = ca.pem
private_key = ca.key
default_md = sha256
policy = any
copy_extensions = copy
rand_serial = yes
unique_subject = no
[any]
commonName = supplied
`

function configuration(dir: string, port: number, s3Port: number): string {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${dir}/${name};`)
  const server = (names: string, certificate: string, location: string) => `server {
    listen 127.0.0.1:${port} ssl;
    server_name ${names};
    ssl_certificate ${dir}/${certificate}.pem;
    ssl_certificate_key ${dir}/${certificate}.key;
    client_max_body_size 0;
    location / { ${location} }
  }`
  return `load_module ${MODULE};
daemon off;
master_process off;
pid ${dir}/nginx.pid;
error_log stderr emerg;
events {}
http {
  access_log off;
  ${paths.join('\n  ')}
  ${server('other.test', 'good', 'return 421;')}
  ${server('*.s3.test', 'good', `proxy_pass http://127.0.0.1:${s3Port}; proxy_set_header Host $http_host;`)}
  ${server('dav.test', 'good', `root ${dir}/root; dav_methods PUT DELETE MKCOL MOVE; dav_ext_methods PROPFIND OPTIONS;`)}
  ${server('old.test', 'old', 'return 421;')}
}
`
}
