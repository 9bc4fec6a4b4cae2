import { crc32, deflateSync } from 'node:zlib'

/** A square PNG of one colour. */
export function solidPng(side: number, [red, green, blue]: readonly [number, number, number]): Buffer<ArrayBuffer> {
  const row = [0, ...Array.from({ length: side }, () => [red, green, blue]).flat()]
  const pixels = deflateSync(Buffer.from(Array.from({ length: side }, () => row).flat()))
  const head = Buffer.alloc(13)
  head.writeUInt32BE(side, 0)
  head.writeUInt32BE(side, 4)
  head.set([8, 2], 8)
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  return Buffer.concat([signature, chunk('IHDR', head), chunk('IDAT', pixels), chunk('IEND', Buffer.alloc(0))])
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const frame = Buffer.alloc(8)
  frame.writeUInt32BE(data.length, 0)
  frame.writeUInt32BE(crc32(body), 4)
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)])
}
