import { type IncomingMessage, type Server, ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { RequestError } from '@hono/node-server'
import { AppError, problem, toAppError } from '../../app/http/errors.ts'
import { newRequestId } from '../../app/http/request-id.ts'
import { SECURITY_HEADERS } from '../../app/http/security.ts'

const HEADERS = { ...SECURITY_HEADERS, 'Cache-Control': 'no-store', Connection: 'close' } as const

/**
 * Answers requests that Node's HTTP parser refuses, which never reach the application, in the format of every other
 * error.
 */
export function answerMalformed(server: Server): void {
  server.on('clientError', (error: Error, socket: Duplex) => {
    if (!socket.writable || isBeingAnswered(socket)) return void socket.destroy(error)
    void sendText(socket, refusal(parserError(error)))
  })
  // A server may ignore an expectation that it does not know (RFC 9110, 10.1.1).
  server.on('checkExpectation', (request, response) => void server.emit('request', request, response))
}

/** The answer to a request with an invalid URL, or one that the application did not answer. */
export function answerUnaddressable(error: unknown): Response {
  return refusal(error instanceof RequestError ? new AppError('invalid_request', error.message) : toAppError(error))
}

/** Whether the request has to name its host and does not (RFC 9112, 3.2). */
export function isHostless({ httpVersion, headers }: Pick<IncomingMessage, 'httpVersion' | 'headers'>): boolean {
  return headers.host === undefined && httpVersion === '1.1'
}

export function refuseHostless(): Response {
  return refusal(new AppError('invalid_request', 'Missing Host header'))
}

function refusal(error: AppError): Response {
  const requestId = newRequestId()
  const response = problem(error, requestId)
  for (const [name, value] of Object.entries(HEADERS)) response.headers.set(name, value)
  response.headers.set('X-Request-Id', requestId)
  return response
}

// The errors for which Node itself would send another status than 400 (nodejs.org/api/http.html, event 'clientError').
function parserError(error: Error): AppError {
  switch ('code' in error ? error.code : null) {
    case 'HPE_HEADER_OVERFLOW':
      return new AppError('headers_too_large')
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new AppError('payload_too_large')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new AppError('request_timeout')
    default:
      return new AppError('invalid_request', 'Not an HTTP/1.1 request')
  }
}

// The error may be in the next request on the connection, or in the rest of a body. An answer that has begun is
// finished first.
function isBeingAnswered(socket: Duplex): boolean {
  // oxlint-disable-next-line no-underscore-dangle -- where Node keeps it, and itself looks before it answers
  const message = '_httpMessage' in socket ? socket._httpMessage : null
  return message instanceof ServerResponse && message.headersSent
}

async function sendText(socket: Duplex, response: Response): Promise<void> {
  const body = await response.text()
  const lines = [...response.headers].map(([name, value]) => `${name}: ${value}`)
  const start = `HTTP/1.1 ${response.status} ${STATUS_CODES[response.status]}`
  const text = [start, ...lines, `content-length: ${Buffer.byteLength(body)}`, '', body].join('\r\n')
  socket.end(text, () => socket.destroy())
}
