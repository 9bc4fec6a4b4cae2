import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
import { type Front, openFront } from './front.ts'

export const ACCESS_KEY = 'AKIDEXAMPLE'
export const SECRET_KEY = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'
export const BUCKET = 'mesh'
/** Where Miniflare serves buckets, and below what the signatures of requests are. */
export const S3_PATH = '/cdn-cgi/local/r2/s3'

export type S3 = {
  /** The server as a service reaches it. */
  readonly front: Front
  /** Names and bytes of the objects whose names begin so, without the mark of the service. */
  objects(prefix: string): Promise<Map<string, Buffer>>
  close(): Promise<void>
}

/** Miniflare's R2 with the protocol of S3. It verifies the signature and the hashes of each request. */
export async function startS3(): Promise<S3> {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-s3-'))
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      modules: true,
      script: 'export default {}',
      compatibilityDate: '2025-09-01',
      r2Buckets: {
        BUCKET: { id: BUCKET, s3Credentials: { accessKeyId: ACCESS_KEY, secretAccessKey: SECRET_KEY } },
      },
      defaultPersistRoot: folder,
      // The names that it answers besides localhost.
      routes: ['*.s3.test/*'],
      host: '127.0.0.1',
      port: 0,
      cf: false,
      telemetry: { enabled: false },
    }),
  )
  const url = await miniflare.ready
  const front = await openFront(Number(url.port))
  return {
    front,
    async objects(prefix) {
      const bucket = await miniflare.getR2Bucket('BUCKET')
      const found = new Map<string, Buffer>()
      for (const { key } of (await bucket.list({ prefix })).objects) {
        if (key.endsWith('/.mesh-copies')) continue
        const object = await bucket.get(key)
        if (object !== null) found.set(key.slice(prefix.length), Buffer.from(await object.arrayBuffer()))
      }
      return found
    },
    async close() {
      await front.close()
      await miniflare.dispose()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
