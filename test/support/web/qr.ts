import { execFileSync } from 'node:child_process'

/** The text of the QR code in a picture, as another implementation reads it. Throws if there is none. */
export function readQr(png: Buffer): string {
  const text = execFileSync('zbarimg', ['--quiet', '--raw', '--oneshot', '--nodbus', 'png:-'], { input: png })
  return text.toString()
}
