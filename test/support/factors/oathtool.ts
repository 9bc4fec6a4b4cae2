import { execFileSync } from 'node:child_process'

/** The code that another implementation of RFC 6238 gives for a base32 secret at a time in ms. */
export function codeAt(secret: string, at: number): string {
  const when = new Date(at).toISOString().replace(/\.\d+Z$/, 'Z')
  return execFileSync('oathtool', ['--totp', '--base32', `--now=${when}`, secret], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], TZ: 'UTC' },
  }).trim()
}
