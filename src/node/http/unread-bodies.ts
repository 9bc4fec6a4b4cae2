import type { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'

/** Sixteen times what any request may have. */
const MOST_BYTES = 16 * 1024 * 1024
/** For a client that sends slowly, or has stopped. */
const MOST_MS = 30_000

/**
 * Lets a client finish a body that nobody reads before its connection is closed. If it were closed at once, the client's
 * next bytes would be answered by a reset, and a client that has not read the answer by then loses it. Call it before
 * the request is answered.
 */
export function closeAfterBody(request: IncomingMessage): void {
  const { socket } = request
  // Node calls it after an answer with "Connection: close", and the listener of hono half a second after other answers.
  socket.destroySoon = () => {
    if (request.complete || socket.destroyed) closeNow(socket)
    else discard(request)
  }
}

function discard(request: IncomingMessage): void {
  const { socket } = request
  const close = () => {
    clearTimeout(timer)
    socket.destroySoon = () => closeNow(socket)
    closeNow(socket)
  }
  const timer = setTimeout(close, MOST_MS)
  let bytes = 0
  // Whoever read the body before has answered.
  request.removeAllListeners('data')
  request.on('data', ({ length }: Buffer) => {
    bytes += length
    if (bytes > MOST_BYTES) close()
  })
  request.once('end', close)
  request.once('close', close)
  // The answer is complete: nothing more will be written.
  socket.end()
  request.resume()
}

function closeNow(socket: Socket): void {
  Socket.prototype.destroySoon.call(socket)
}
