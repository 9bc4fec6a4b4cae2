import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'

const LETTERS = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
const CHECKSUM = 6
const START = 'AGE-SECRET-KEY-1'

/** What would tell a private key of age: halves of it as text, and its 32 bytes, as they are, in hexadecimal and base64. */
function signsOf(key: string): Buffer[] {
  const text = key.toLowerCase().slice(START.length)
  const halves = [text.slice(0, 24), text.slice(24, 48)]
  const bits = Array.from(text.slice(0, -CHECKSUM), (letter) => LETTERS.indexOf(letter).toString(2).padStart(5, '0'))
  const bytes = Buffer.from(
    bits
      .join('')
      .match(/.{8}/g)
      ?.map((octet) => Number.parseInt(octet, 2)) ?? [],
  )
  const encoded = [
    bytes.toString('hex'),
    bytes.toString('base64').slice(0, -2),
    bytes.toString('base64url').slice(0, -2),
  ]
  const texts = [...halves, ...halves.map((half) => half.toUpperCase()), ...encoded]
  return [bytes, ...texts.map((sign) => Buffer.from(sign))]
}

/** Whether bytes contain a private key, or the content of a gzip archive does. */
export function tells(key: string, bytes: Buffer): boolean {
  const content = bytes.readUInt16BE(0) === 0x1f8b ? gunzipSync(bytes) : bytes
  return signsOf(key).some((sign) => content.includes(sign))
}

/** The files in a folder, and in those below it, that contain a private key, and how many were read. */
export function filesThatTell(key: string, folder: string): { read: number; telling: string[] } {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
  const telling = files.filter((file) => {
    const bytes = readFileSync(file)
    return bytes.length > 1 && tells(key, bytes)
  })
  return { read: files.length, telling }
}
