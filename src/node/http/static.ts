import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { readFile as readFromDisk } from 'node:fs/promises'
import { extname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { matchesEtag } from '../../app/http/compression.ts'
import { basePath } from '../../app/config/config.ts'
import type { Pages } from '../../app/http/pages.ts'
import { isPagePath } from '../../shared/pages.ts'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
  '.webmanifest': 'application/manifest+json',
  '.bin': 'application/octet-stream',
}

const NOT_BUILT =
  'The web application is not built. Run "npm run build", then start the service again. The API is at /api.\n'

type Encoding = 'br' | 'gzip'
type File = {
  read(): Promise<Buffer>
  readonly type: string
  readonly etag: string
  /** Its name changes with its content. */
  readonly isHashed: boolean
  readonly packed: Map<Encoding, Promise<Buffer>>
}

/** Where `npm run build` puts the web application, seen from the build and from the source. */
export function builtSite(): string {
  const here = import.meta.url
  return fileURLToPath(new URL(here.endsWith('.ts') ? '../../../dist/web/' : '../web/', here))
}

/**
 * Serves the files below `directory`, listed once: no request path ever reaches the disk. All are in memory, except the
 * pieces of the map, of which there are many and few are needed. Any other path gets the page of the application, with
 * 404 unless the application has a page there. `publicUrl` may have a path, under
 * which a proxy serves the site.
 */
export function serveSite(directory: string, publicUrl: string | null): Pages {
  if (!existsSync(join(directory, 'index.html'))) return async () => notFound(NOT_BUILT)
  const files = readSite(directory, basePath({ PUBLIC_URL: publicUrl }))
  return async (request) => {
    const { pathname } = new URL(request.url)
    const file = files.get(pathname)
    if (file !== undefined) return answer(request, file)
    const page = isFileName(pathname) ? undefined : files.get('/index.html')
    if (page === undefined) return notFound('Not found\n')
    // People see the page, which says that nothing is here; programs see the status.
    return answer(request, page, isPagePath(pathname) ? 200 : 404)
  }
}

// A deleted file must not be answered with a page: a browser would take it for a script.
function isFileName(pathname: string): boolean {
  return pathname.startsWith('/assets/') || extname(pathname) !== ''
}

function notFound(text: string): Response {
  return new Response(text, { status: 404, headers: { 'Content-Type': 'text/plain; charset=utf-8' } })
}

function readSite(directory: string, base: string): ReadonlyMap<string, File> {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return new Map(
    entries.flatMap((entry) => {
      const path = join(entry.parentPath, entry.name)
      const type = TYPES[extname(entry.name)]
      const url = `/${relative(directory, path).split(sep).join('/')}`
      return type === undefined ? [] : [[url, readFile(path, url, type, base)]]
    }),
  )
}

function readFile(path: string, url: string, type: string, base: string): File {
  const isHashed = url.startsWith('/assets/')
  if (isHashed && url.endsWith('.bin')) {
    const etag = `"${createHash('sha256').update(url).digest('base64url').slice(0, 22)}"`
    return { read: () => readFromDisk(path), type, etag, isHashed, packed: new Map() }
  }
  const raw = readFileSync(path)
  const isHtml = url.endsWith('.html')
  const bytes = isHtml ? Buffer.from(raw.toString('utf8').replaceAll(/(src|href)="\//g, `$1="${base}/`)) : raw
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`
  const kept = Buffer.from(bytes)
  return { read: async () => kept, type, etag, isHashed, packed: new Map() }
}

async function answer(request: Request, file: File, status = 200): Promise<Response> {
  const headers: Record<string, string> = {
    'Content-Type': file.type,
    'Cache-Control': file.isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
    // Weak, because the compressed forms share it.
    ETag: `W/${file.etag}`,
    Vary: 'Accept-Encoding',
  }
  if (status === 200 && matchesEtag(request.headers.get('if-none-match') ?? undefined, file.etag)) {
    return new Response(null, { status: 304, headers })
  }
  const encoding = acceptedEncoding(request.headers.get('accept-encoding') ?? '', file.type)
  const body = encoding === null ? await file.read() : await pack(file, encoding)
  if (encoding !== null) headers['Content-Encoding'] = encoding
  headers['Content-Length'] = String(body.length)
  return new Response(request.method === 'HEAD' ? null : new Uint8Array(body), { status, headers })
}

function acceptedEncoding(header: string, type: string): Encoding | null {
  if (!/^text|svg/.test(type)) return null
  const accepted = header.split(',').map((part) => part.trim().replace(/;\s*q=(?!0(\.0*)?$).*/, ''))
  return accepted.includes('br') ? 'br' : accepted.includes('gzip') ? 'gzip' : null
}

const brotli = promisify(brotliCompress)
const zip = promisify(gzip)

/** Once for each file and encoding, off the event loop. */
function pack(file: File, encoding: Encoding): Promise<Buffer> {
  const known = file.packed.get(encoding)
  if (known !== undefined) return known
  const packed = compress(file, encoding)
  file.packed.set(encoding, packed)
  return packed
}

async function compress(file: File, encoding: Encoding): Promise<Buffer> {
  const bytes = await file.read()
  return encoding === 'br'
    ? brotli(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } })
    : zip(bytes, { level: 9 })
}
