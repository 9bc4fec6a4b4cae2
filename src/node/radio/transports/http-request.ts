import { type Agent, type IncomingMessage } from 'node:http'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'

/** A radio that needs longer has hung up without saying so. */
const TIMEOUT_MS = 15_000
/** More than any message of a radio. */
const MAX_BYTES = 1024

/** An answer that no radio gives. */
export class BadAnswer extends Error {}

export type Question = {
  readonly url: string
  readonly method: 'GET' | 'PUT' | 'OPTIONS'
  readonly body?: Uint8Array
}

/** The content of the answer. Throws `BadAnswer`, or the error of the connection. */
export async function ask(agent: Agent, question: Question): Promise<Uint8Array> {
  try {
    return await askOnce(agent, question)
  } catch (error) {
    // The radio closed the connection while nothing was asked. What was sent may have been taken, so it is not repeated.
    if (question.method === 'PUT' || !(error instanceof Error && 'isIdle' in error)) throw error
    return askOnce(agent, question)
  }
}

function askOnce(agent: Agent, { url, method, body }: Question): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const request = url.startsWith('https:') ? requestHttps : requestHttp
    const headers = body === undefined ? {} : { 'content-type': TYPE, 'content-length': body.length }
    const asked = request(url, { agent, method, headers, timeout: TIMEOUT_MS }, (answer) => {
      read(answer).then(resolve, (error: unknown) => {
        asked.destroy()
        reject(error)
      })
    })
    asked.on('timeout', () => asked.destroy(Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' })))
    asked.on('error', (error: Error) => reject(asked.reusedSocket ? Object.assign(error, { isIdle: true }) : error))
    asked.end(body)
  })
}

const TYPE = 'application/x-protobuf'

async function read(answer: IncomingMessage): Promise<Uint8Array> {
  const { statusCode = 0, headers } = answer
  if (statusCode < 200 || statusCode > 299) throw new BadAnswer(`status ${statusCode}`)
  if (headers['content-type']?.startsWith(TYPE) !== true) throw new BadAnswer('another type of content')
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of answer) {
    if (!Buffer.isBuffer(chunk)) continue
    length += chunk.length
    if (length > MAX_BYTES) throw new BadAnswer('too long')
    chunks.push(chunk)
  }
  return new Uint8Array(Buffer.concat(chunks))
}
