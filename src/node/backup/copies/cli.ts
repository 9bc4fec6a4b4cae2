import { readFileSync } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { SendFailure } from '../../../app/base/outgoing/ports.ts'
import { AppError } from '../../../app/http/errors.ts'
import { readTarget, type Target } from '../../../app/system/copies/settings.ts'
import { readConfig } from '../../start/environment.ts'
import { createProgressBar } from '../progress-bar.ts'
import { diskFiles } from '../folder/files.ts'
import { isBackupName } from '../../../app/system/backup/format/names.ts'
import { askSecret } from './ask-secret.ts'
import { fetchCopy } from './fetch.ts'
import { readIdentities, refused } from './identities.ts'
import { backupNameOf } from './places/listed.ts'
import type { Place } from './places/place.ts'
import { placeOpener } from './places/open-place.ts'

export const COPIES_USAGE = `  copies list [--place <place>]
                              the encrypted copies of backups at a place
  copies fetch <name>|latest --identity <file>|- [--place <place>]
                              decrypt a copy into DATA_DIR/system-backups; - reads the private key from standard input.
                              A key with a passphrase, as age -p makes it, asks for it on the terminal.
                              Then start once with RESTORE_FROM_BACKUP=<name>
                              <place> is s3+https://<host>?bucket=…&prefix=…&region=…, dav+https://<host>/<folder>/ or a
                              folder; without --place that in COPIES_PLACE. COPIES_USER and COPIES_PASSWORD are the
                              user name or access key, and its secret; COPIES_CA is a file of certificates to trust
`

type Asked = { command: 'list' | 'fetch'; name: string; identity: string; place: string | null }

/** The command in all arguments after `copies`; null if they are invalid. */
export function readCopiesCommand(args: readonly string[]): Asked | null {
  const [command, ...rest] = args
  const [name, options] = command === 'fetch' ? [rest[0] ?? '', rest.slice(1)] : ['', rest]
  const asked = { name, identity: '', place: null as string | null }
  for (let i = 0; i < options.length; i += 2) {
    const value = options[i + 1]
    if (value === undefined || value === '') return null
    if (options[i] === '--place' && asked.place === null) asked.place = value
    else if (options[i] === '--identity' && command === 'fetch' && asked.identity === '') asked.identity = value
    else return null
  }
  if (command === 'list') return { command, ...asked }
  if (command !== 'fetch' || asked.identity === '' || !(name === 'latest' || isBackupName(name))) return null
  return { command, ...asked }
}

/** Needs no database, only DATA_DIR. Returns the exit code: 0 done, 1 refused. */
export async function runCopiesCommand(asked: Asked, env: NodeJS.ProcessEnv): Promise<number> {
  try {
    const place = placeOpener({ wait, dataDir: null })(targetOf(asked.place ?? env['COPIES_PLACE'] ?? '', env))
    return asked.command === 'list' ? await list(place) : await fetch(place, asked, env)
  } catch (error) {
    if (!(error instanceof AppError) && !(error instanceof SendFailure)) throw error
    process.stderr.write(`${error.message}\n`)
    return 1
  }
}

/** A place as it is written on the command line, in the shape that the page stores. Throws AppError. */
export function targetOf(place: string, env: NodeJS.ProcessEnv): Target {
  const user = env['COPIES_USER'] ?? ''
  const password = secretOf(env)
  const path = env['COPIES_CA'] ?? ''
  const ca = path === '' ? null : readFileSync(path, 'utf8')
  // Whoever sits here decides where this machine connects to.
  const common = { ca, ownNetwork: true }
  if (place.startsWith('/')) return readTarget('folder', { path: place }, null)
  if (/^dav\+https?:\/\//.test(place)) {
    return readTarget('webdav', { url: place.slice(4), username: user, password, ...common }, null)
  }
  if (!/^s3\+https?:\/\//.test(place) || !URL.canParse(place.slice(3))) {
    throw refused('Name the place with --place or COPIES_PLACE: s3+https://…, dav+https://… or a folder')
  }
  const url = new URL(place.slice(3))
  const given = (name: string) => url.searchParams.get(name) ?? undefined
  const settings = {
    endpoint: `${url.origin}${url.pathname}`,
    bucket: given('bucket'),
    prefix: given('prefix'),
    region: given('region'),
    pathStyle: given('style') !== 'host',
    accessKeyId: user,
    secretAccessKey: password,
    ...common,
  }
  return readTarget('s3', settings, null)
}

function secretOf(env: NodeJS.ProcessEnv): string {
  const file = env['COPIES_PASSWORD_FILE'] ?? ''
  return file === '' ? (env['COPIES_PASSWORD'] ?? '') : readFileSync(file, 'utf8').trimEnd()
}

/** The copies at a place, the newest first. */
async function copiesIn(place: Place): Promise<{ name: string; size: number }[]> {
  const found = (await place.list()).flatMap(({ name: file, size }) => {
    const name = backupNameOf(file)
    return name === null ? [] : [{ name, size }]
  })
  return found.toSorted((a, b) => (a.name < b.name ? 1 : -1))
}

async function list(place: Place): Promise<number> {
  const copies = await copiesIn(place)
  for (const { name, size } of copies) process.stdout.write(`${name}  ${String(size).padStart(14)} bytes\n`)
  if (copies.length === 0) process.stderr.write('There are no copies at this place\n')
  return 0
}

async function fetch(place: Place, { name, identity }: Asked, env: NodeJS.ProcessEnv): Promise<number> {
  const parsed = readConfig(env)
  if (!parsed.ok) throw refused(parsed.problems.join('\n'))
  const identities = await readIdentities(
    identity === '-' ? await buffer(process.stdin) : readIdentityFile(identity),
    askPassphrase,
  )
  const copies = await copiesIn(place)
  const wanted = name === 'latest' ? copies[0] : copies.find((one) => one.name === name)
  if (wanted === undefined) throw refused('There is no such copy at this place')
  const bar = createProgressBar(process.stderr, 'MB')
  let read = 0
  try {
    const path = await fetchCopy(place, wanted.name, identities, {
      dataDir: parsed.config.DATA_DIR,
      files: diskFiles,
      onRead: (bytes) => {
        read += bytes
        bar.show(Math.round(read / 1_000_000), Math.ceil(wanted.size / 1_000_000))
      },
    })
    bar.end()
    process.stdout.write(`${path}\nNow start the service once with RESTORE_FROM_BACKUP=${wanted.name}\n`)
    return 0
  } finally {
    bar.end()
  }
}

async function askPassphrase(): Promise<string> {
  const passphrase = await askSecret('Passphrase of the private key: ')
  if (passphrase !== null) return passphrase
  throw refused('The private key has a passphrase, which is asked for on a terminal: decrypt it first, with age -d')
}

function readIdentityFile(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
    throw refused(`The file with the private key cannot be read${why}`)
  }
}
