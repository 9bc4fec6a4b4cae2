import type { R2ListOptions, R2PutOptions } from '@cloudflare/workers-types'
import type { Bucket } from '../../../src/edge/backup/bucket.ts'

type Kept = { readonly bytes: Uint8Array<ArrayBuffer>; readonly customMetadata: Record<string, string> }

const LOCKED = 'the object is locked by the bucket policy (10069)'

/** A bucket in memory, which does to the next puts what a test wants. */
export type MemoryBucket = Bucket & {
  readonly objects: Map<string, Kept>
  /** Runs before each call, with its name and key; what it throws, the call throws. */
  before: (call: string, key: string) => void
  /** As under a lock of R2: nothing is deleted or written over. */
  isLocked: boolean
  /** Bytes that a put keeps; null: all of them. */
  cutAt: number | null
}

export function memoryBucket(): MemoryBucket {
  const objects = new Map<string, Kept>()
  const described = (key: string, { bytes, customMetadata }: Kept) => ({ key, size: bytes.length, customMetadata })
  const bucket = {
    objects,
    before: (_call: string, _key: string) => {},
    isLocked: false,
    cutAt: null as number | null,
    async put(key: string, value: Uint8Array, options: R2PutOptions = {}) {
      bucket.before('put', key)
      if (bucket.isLocked && objects.has(key)) throw new Error(LOCKED)
      const bytes = new Uint8Array(bucket.cutAt === null ? value : value.slice(0, bucket.cutAt))
      const kept = { bytes, customMetadata: { ...options.customMetadata } }
      objects.set(key, kept)
      return described(key, kept)
    },
    async head(key: string) {
      bucket.before('head', key)
      const kept = objects.get(key)
      return kept === undefined ? null : described(key, kept)
    },
    async get(key: string, { range }: { range?: { offset: number; length: number } } = {}) {
      bucket.before('get', key)
      const kept = objects.get(key)
      if (kept === undefined) return null
      const { offset, length } = range ?? { offset: 0, length: kept.bytes.length }
      if (range !== undefined && offset >= kept.bytes.length) {
        throw new Error('get: The requested range is not satisfiable (10039)')
      }
      const blob = new Blob([kept.bytes.slice(offset, offset + length)])
      return {
        ...described(key, kept),
        body: blob.stream(),
        text: () => blob.text(),
        arrayBuffer: () => blob.arrayBuffer(),
      }
    },
    async list({ prefix = '', delimiter }: R2ListOptions = {}) {
      bucket.before('list', prefix)
      const keys = [...objects.keys()].filter((key) => key.startsWith(prefix)).toSorted()
      const folders = keys.map((key) => key.slice(0, key.indexOf(delimiter ?? '\0', prefix.length) + 1))
      return {
        objects:
          delimiter === undefined
            ? [...objects].filter(([key]) => key.startsWith(prefix)).map(([key, kept]) => described(key, kept))
            : [],
        delimitedPrefixes: delimiter === undefined ? [] : [...new Set(folders)],
        truncated: false,
      }
    },
    async delete(keys: string | string[]) {
      for (const key of [keys].flat()) {
        bucket.before('delete', key)
        if (bucket.isLocked && objects.has(key)) throw new Error(LOCKED)
        objects.delete(key)
      }
    },
  }
  const any: unknown = bucket
  // Only what backups use of R2.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return any as MemoryBucket
}
