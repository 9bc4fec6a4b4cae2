import { once } from 'node:events'
import { createServer } from 'node:http'
import { solidPng } from './png.ts'

export type TileServer = {
  readonly origin: string
  /** Path and Referer of each request so far. */
  readonly asked: { path: string; referer: string | undefined }[]
  /** Whether it answers with tiles, or with 503. */
  isUp: boolean
  close(): Promise<void>
}

/** A tile host on loopback, all tiles of one colour. */
export async function openTileServer(colour: readonly [number, number, number]): Promise<TileServer> {
  const tile = solidPng(256, colour)
  const server = createServer((request, response) => {
    tiles.asked.push({ path: request.url ?? '', referer: request.headers.referer })
    if (tiles.isUp) response.writeHead(200, { 'content-type': 'image/png' }).end(tile)
    else response.writeHead(503).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('not listening on a port')
  const tiles: TileServer = {
    origin: `http://127.0.0.1:${address.port}`,
    asked: [],
    isUp: true,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return tiles
}
