import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { AwsV4Signer } from 'aws4fetch'
import type { S3Settings } from '../../../../app/system/copies/settings.ts'
import { counted, demandContent } from './content.ts'
import { demandWhole, isCopy } from './listed.ts'
import { markPlace, readOwner } from './mark.ts'
import type { Place, Sending, Sent, Stored, Upload } from './place.ts'
import { CopyFailure, failureOf } from './problems.ts'
import { type Answer, ask, leave, type Server, textOf } from './requests.ts'
import { elements, textIn } from './xml.ts'

/** Larger files go in parts. */
const MULTIPART_BYTES = 100_000_000
const EMPTY = createHash('sha256').digest('hex')
const MAX_PAGES = 100
/** Attempts of one part before the whole attempt fails. */
const PART_TRIES = 4

type Options = Server & {
  /** Lets `ms` pass. */
  readonly wait: (ms: number) => Promise<unknown>
  /** For tests: from which size on a file goes in parts. */
  readonly multipartBytes?: number
}

type S3Request = {
  readonly method: string
  /** Null: the bucket. */
  readonly name: string | null
  readonly query?: Readonly<Record<string, string>>
  readonly sha256?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Readable | string
}

/** A bucket of a service that speaks the protocol of Amazon S3. */
export function openS3(settings: S3Settings, options: Options): Place {
  const { prefix } = settings
  const base = bucketUrl(settings)

  const request = async ({ method, name, query = {}, sha256 = EMPTY, headers = {}, body }: S3Request) => {
    const url = new URL(name === null ? base : `${base}${prefix}${name}`)
    for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value)
    const signed = await new AwsV4Signer({
      method,
      url: url.href,
      headers: { ...headers, 'x-amz-content-sha256': sha256 },
      accessKeyId: settings.accessKeyId,
      secretAccessKey: settings.secretAccessKey,
      service: 's3',
      region: settings.region,
    }).sign()
    const all = Object.fromEntries(signed.headers)
    return ask(options, { method, url: signed.url.href, headers: all, ...(body !== undefined && { body }) })
  }

  /** As `request`; throws unless the answer is a success. */
  const demand = async (asked: S3Request): Promise<Answer> => {
    const answer = await request(asked)
    if (answer.status >= 200 && answer.status < 300) return answer
    throw await refusalOf(answer)
  }

  const begin = async (name: string, file: Sent, { upload, keep }: Sending): Promise<Upload> => {
    if (upload !== null && upload.sha256 === file.sha256) return upload
    if (upload !== null) await abort(name, upload)
    const answer = await textOf(await demand({ method: 'POST', name, query: { uploads: '' } }))
    const id = textIn(answer, 'UploadId')
    if (id === null) throw new CopyFailure('unknown')
    const begun = { id, sha256: file.sha256, etags: [] }
    await keep(begun)
    return begun
  }

  const abort = async (name: string, { id }: Upload): Promise<void> => {
    const answer = await request({ method: 'DELETE', name, query: { uploadId: id } })
    leave(answer)
    // Gone already, or a server that knows no abort and ends uploads by a rule of its own.
    if (![200, 204, 404, 405, 501].includes(answer.status)) throw failureOf(answer.status)
  }

  const sendPart = async (name: string, id: string, file: Sent, number: number, onSent: Sending['onSent']) => {
    const hashes = file.parts[number]
    if (hashes === undefined) throw new Error('there is no such part')
    const from = number * file.partSize
    const to = Math.min(file.size, from + file.partSize)
    for (let failures = 0; ;) {
      try {
        const answer = await demand({
          method: 'PUT',
          name,
          query: { partNumber: String(number + 1), uploadId: id },
          sha256: hashes.sha256,
          headers: { 'content-length': String(to - from), 'content-md5': base64(hashes.md5) },
          body: counted(file.read(from, to), onSent),
        })
        leave(answer)
        return etagOf(answer, hashes.md5)
      } catch (error) {
        if (!(error instanceof CopyFailure) || !error.isPassing || ++failures >= PART_TRIES) throw error
        await options.wait(1000 * 2 ** (failures - 1))
      }
    }
  }

  const sendParts = async (name: string, file: Sent, sending: Sending): Promise<string> => {
    const { id, etags: known } = await begin(name, file, sending)
    const etags = [...known]
    try {
      sending.onSent(Math.min(file.size, etags.length * file.partSize))
      while (etags.length < file.parts.length) {
        etags.push(await sendPart(name, id, file, etags.length, sending.onSent))
        await sending.keep({ id, sha256: file.sha256, etags })
      }
      const parts = etags.map(
        (etag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${escapeXml(etag)}</ETag></Part>`,
      )
      const body = `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${parts.join('')}</CompleteMultipartUpload>`
      const sha256 = createHash('sha256').update(body).digest('hex')
      const text = await textOf(await demand({ method: 'POST', name, query: { uploadId: id }, sha256, body }))
      // A success may turn out as a failure while the parts are put together.
      if (!text.includes('CompleteMultipartUploadResult')) throw problemIn(text) ?? new CopyFailure('busy', true)
    } catch (error) {
      const isGone = error instanceof CopyFailure && error.problem === 'gone'
      // An interrupted attempt may have completed it. Otherwise the check says so, and the next attempt begins anew.
      if (!isGone || known.length < file.parts.length) {
        if (isGone) await sending.keep(null)
        throw error
      }
    }
    const md5s = Buffer.concat(file.parts.map(({ md5 }) => Buffer.from(md5, 'hex')))
    return `${createHash('md5').update(md5s).digest('hex')}-${file.parts.length}`
  }

  const sendWhole = async (name: string, file: Sent, { onSent }: Sending): Promise<string> => {
    const answer = await demand({
      method: 'PUT',
      name,
      sha256: file.sha256,
      headers: {
        'content-length': String(file.size),
        'content-md5': base64(file.md5),
        'content-type': 'application/octet-stream',
      },
      body: counted(file.read(0, file.size), onSent),
    })
    leave(answer)
    return file.md5
  }

  const check = async (name: string, file: Sent, etag: string): Promise<void> => {
    const answer = await request({ method: 'HEAD', name })
    leave(answer)
    if (answer.status === 404) throw new CopyFailure('gone')
    if (answer.status !== 200) throw failureOf(answer.status)
    const size = answer.header('content-length')
    if (size !== null && Number(size) !== file.size) throw new CopyFailure('otherSize')
    // Encrypted by the place with a key of its own service, or answered by one that has other tags: read it back.
    const isTag =
      isMd5(unquoted(answer)) && !(answer.header('x-amz-server-side-encryption') ?? '').startsWith('aws:kms')
    if (size === null || !isTag) return demandContent(await place.read(name), file)
    if (unquoted(answer) !== etag) throw new CopyFailure('otherContent')
  }

  const place: Place = {
    async send(name, file, sending) {
      const isLarge = file.size > (options.multipartBytes ?? MULTIPART_BYTES)
      const etag = isLarge ? await sendParts(name, file, sending) : await sendWhole(name, file, sending)
      try {
        await check(name, file, etag)
      } catch (error) {
        if (error instanceof CopyFailure && !error.isPassing) {
          await sending.keep(null)
          await place.remove(name).catch(() => {})
        }
        throw error
      }
    },
    async clean(name, upload) {
      if (upload !== null) await abort(name, upload)
    },
    async list() {
      const found: Stored[] = []
      let token: string | null = null
      for (let page = 0; page < MAX_PAGES; page++) {
        const query = { 'list-type': '2', prefix, ...(token !== null && { 'continuation-token': token }) }
        const text = await textOf(await demand({ method: 'GET', name: null, query }))
        if (!text.includes('ListBucketResult')) throw new CopyFailure('unknown')
        for (const entry of elements(text, 'Contents')) {
          const key = textIn(entry, 'Key') ?? ''
          const size = Number(textIn(entry, 'Size'))
          const own = key.startsWith(prefix) ? key.slice(prefix.length) : ''
          if (isCopy(own)) found.push({ name: own, size })
        }
        demandWhole(found)
        if (textIn(text, 'IsTruncated') !== 'true') return found
        token = textIn(text, 'NextContinuationToken')
        if (token === null) throw new CopyFailure('unknown')
      }
      return demandWhole(found, true)
    },
    async read(name) {
      const answer = await request({ method: 'GET', name })
      if (answer.status === 200) return answer.body
      leave(answer)
      throw answer.status === 404 ? new CopyFailure('gone') : failureOf(answer.status)
    },
    async remove(name) {
      const answer = await request({ method: 'DELETE', name })
      if (answer.status === 404 || (answer.status >= 200 && answer.status < 300)) return leave(answer)
      throw await refusalOf(answer)
    },
    owner: () => readOwner(place),
    claim: (service) => markPlace(place, service),
  }
  return place
}

function bucketUrl({ endpoint, bucket, pathStyle }: S3Settings): string {
  const url = new URL(endpoint)
  const path = url.pathname.replace(/\/$/, '')
  return pathStyle ? `${url.origin}${path}/${bucket}/` : `${url.protocol}//${bucket}.${url.host}${path}/`
}

const base64 = (hex: string) => Buffer.from(hex, 'hex').toString('base64')
const isMd5 = (etag: string) => /^[\da-f]{32}(?:-\d+)?$/.test(etag)
const unquoted = (answer: Answer) => (answer.header('etag') ?? '').replaceAll('"', '').replace(/^W\//, '').toLowerCase()

/** The tag of a part, as the place wants it back. One that is the hash of something else is refused at once. */
function etagOf(answer: Answer, md5: string): string {
  const etag = answer.header('etag')
  if (etag === null || etag.length > 200) throw new CopyFailure('unknown')
  const isOwn = (answer.header('x-amz-server-side-encryption') ?? '').startsWith('aws:kms')
  if (!isOwn && isMd5(unquoted(answer)) && unquoted(answer) !== md5) throw new CopyFailure('otherContent')
  return etag
}

const escapeXml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

/** Names of errors, as in https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html. */
const CODES: Readonly<Record<string, CopyFailure['problem']>> = {
  SignatureDoesNotMatch: 'refused',
  InvalidAccessKeyId: 'refused',
  AuthorizationHeaderMalformed: 'redirected',
  PermanentRedirect: 'redirected',
  RequestTimeTooSkewed: 'clock',
  NoSuchBucket: 'missing',
  NoSuchKey: 'gone',
  NoSuchUpload: 'gone',
  InvalidPart: 'gone',
  EntityTooLarge: 'tooLarge',
  QuotaExceeded: 'full',
  XMinioStorageFull: 'full',
  BadDigest: 'otherContent',
  XAmzContentSHA256Mismatch: 'otherContent',
  IncompleteBody: 'cut',
}
const PASSING = new Set(['BadDigest', 'XAmzContentSHA256Mismatch', 'IncompleteBody'])

function problemIn(text: string): CopyFailure | null {
  const code = textIn(text, 'Code') ?? ''
  const problem = CODES[code]
  return problem === undefined ? null : new CopyFailure(problem, PASSING.has(code))
}

async function refusalOf(answer: Answer): Promise<CopyFailure> {
  const text = await textOf(answer).catch(() => '')
  return problemIn(text) ?? failureOf(answer.status)
}
