import type { Readable } from 'node:stream'
import type { WebDavSettings } from '../../../../app/system/copies/settings.ts'
import { counted, demandContent } from './content.ts'
import { demandWhole, isCopy } from './listed.ts'
import { markPlace, readOwner } from './mark.ts'
import type { Place } from './place.ts'
import { CopyFailure, failureOf } from './problems.ts'
import { type Answer, ask, leave, type Server, textOf } from './requests.ts'
import { elements, textIn } from './xml.ts'

const FIELDS = '<?xml version="1.0"?><propfind xmlns="DAV:"><prop><getcontentlength/><resourcetype/></prop></propfind>'

type DavRequest = {
  readonly method: string
  readonly name: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Readable | string
}

/** Files end with it until they are complete and checked. Nextcloud reserves .part for itself. */
export const UNFINISHED = '.unfinished'

/** A folder of a WebDAV server (RFC 4918), such as Nextcloud. */
export function openWebDav(settings: WebDavSettings, server: Server): Place {
  const base = settings.url.endsWith('/') ? settings.url : `${settings.url}/`
  const authorization =
    settings.username === '' && settings.password === ''
      ? {}
      : { authorization: `Basic ${Buffer.from(`${settings.username}:${settings.password}`).toString('base64')}` }

  const request = ({ method, name, headers = {}, body }: DavRequest) =>
    ask(server, {
      method,
      url: `${base}${encodeURIComponent(name)}`,
      headers: { ...authorization, ...headers },
      ...(body !== undefined && { body }),
    })

  const demand = async (asked: DavRequest): Promise<Answer> => {
    const answer = await request(asked)
    if (answer.status >= 200 && answer.status < 300) return answer
    leave(answer)
    throw failureOf(answer.status)
  }

  const place: Place = {
    async send(name, file, { onSent }) {
      const unfinished = `${name}${UNFINISHED}`
      // The folder is there already, or the next request says what is wrong.
      leave(await request({ method: 'MKCOL', name: '' }))
      try {
        const headers = { 'content-length': String(file.size), 'content-type': 'application/octet-stream' }
        const body = counted(file.read(0, file.size), onSent)
        leave(await demand({ method: 'PUT', name: unfinished, headers, body }))
        await demandContent(await place.read(unfinished), file)
      } catch (error) {
        await place.remove(unfinished).catch(() => {})
        throw error
      }
      const headers = { destination: `${base}${encodeURIComponent(name)}`, overwrite: 'T' }
      leave(await demand({ method: 'MOVE', name: unfinished, headers }))
    },
    clean: (name) => place.remove(`${name}${UNFINISHED}`),
    async list() {
      const headers = { depth: '1', 'content-type': 'application/xml' }
      const text = await textOf(await demand({ method: 'PROPFIND', name: '', headers, body: FIELDS }), 'tooMany')
      if (!/multistatus/i.test(text)) throw new CopyFailure('unknown')
      const found = elements(text, 'response').flatMap((entry) => {
        const size = textIn(entry, 'getcontentlength')
        const name = nameOf(textIn(entry, 'href') ?? '')
        return size === null || name === null || !isCopy(name) ? [] : [{ name, size: Number(size) }]
      })
      return demandWhole(found)
    },
    async read(name) {
      const answer = await request({ method: 'GET', name })
      if (answer.status === 200) return answer.body
      leave(answer)
      throw answer.status === 404 ? new CopyFailure('gone') : failureOf(answer.status)
    },
    async remove(name) {
      const answer = await request({ method: 'DELETE', name })
      leave(answer)
      if (answer.status !== 404 && (answer.status < 200 || answer.status >= 300)) throw failureOf(answer.status)
    },
    owner: () => readOwner(place),
    claim: (service) => markPlace(place, service),
  }
  return place
}

function nameOf(href: string): string | null {
  try {
    return decodeURIComponent(href.slice(href.lastIndexOf('/') + 1)) || null
  } catch {
    return null
  }
}
