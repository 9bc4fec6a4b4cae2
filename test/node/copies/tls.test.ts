import { afterAll, beforeAll, expect, test } from 'vitest'
import { BUCKET, type S3, S3_PATH, startS3 } from '../../support/copies/s3.ts'
import { type CopyingService, davSettings, openCopying, readByAge, s3Settings } from '../../support/copies/service.ts'
import { startTlsPlaces, type TlsPlaces } from '../../support/copies/tls.ts'

let s3: S3
let tls: TlsPlaces
let here: CopyingService

beforeAll(async () => {
  s3 = await startS3()
  tls = await startTlsPlaces(Number(new URL(s3.front.url).port))
  here = await openCopying({
    places: {
      wait: async () => {},
      timings: { stallMs: 5000, answerMs: 5000 },
      resolve: async () => [{ address: '127.0.0.1', family: 4 }],
    },
  })
})
afterAll(async () => {
  await here.close()
  await tls.close()
  await s3.close()
})

const address = (name: string) => `https://${name}:${tls.port}`
// The server takes the bucket from the path, and the signature is about both: only the name of the host is new.
const byHost = () => {
  const settings = { ...s3Settings(''), endpoint: `${address('s3.test')}${S3_PATH}/${BUCKET}`, ca: tls.ca }
  return { ...settings, pathStyle: false, region: 'eu-central-1' }
}
const dav = (name: string, ca: string | null) => ({ ...davSettings(address(name)), ca })

test('a bucket in the name of the host, and a folder, behind the certificate of an own authority', async () => {
  const name = await here.backUp()
  await here.add('bucket', 's3', byHost())
  await here.add('folder', 'webdav', dav('dav.test', tls.ca))
  const signed = new Set<string>()
  s3.front.fault = (_method, _path, headers) => {
    const [, scope] = /Credential=[^/]+\/\d+\/([^,]+)/.exec(headers.authorization ?? '') ?? []
    signed.add(`${headers.host} ${scope}`)
    return null
  }
  await here.copies.round()
  const { places, copies } = await here.state()
  expect(places.map(({ problem }) => problem)).toEqual([null, null])
  expect(copies.map((one) => [one.name, one.state])).toEqual([
    [name, 'made'],
    [name, 'made'],
  ])
  expect([...signed]).toEqual([`${BUCKET}.s3.test:${tls.port} eu-central-1/s3/aws4_request`])
  const file = (await s3.objects('hill/')).get(`${name}.tar.gz.age`) ?? Buffer.alloc(0)
  expect(readByAge(here.identity, file)).toContain(`${name}/manifest.json`)
})

test('a certificate that is unknown, expired or for another name is refused with one sentence, and told nothing', async () => {
  const seen = s3.front.seen.length
  const probe = async (kind: string, settings: object) =>
    Object(await (await here.admin.send('POST', '/api/system/copies/test', { kind, settings })).json()).problem
  const unknown = 'The certificate of the place is not from an authority that is trusted'
  expect(await probe('s3', { ...byHost(), ca: tls.otherCa })).toBe(unknown)
  expect(await probe('s3', { ...byHost(), ca: null })).toBe(unknown)
  expect(await probe('webdav', dav('dav.test', tls.otherCa))).toBe(unknown)
  expect(await probe('webdav', dav('old.test', tls.ca))).toBe(
    'The certificate of the place has expired, or is not valid yet',
  )
  expect(await probe('webdav', dav('else.test', tls.ca))).toBe('The certificate of the place is for another name')
  const plain = { ...s3Settings(s3.front.url), endpoint: `https://localhost:${new URL(s3.front.url).port}` }
  expect(await probe('s3', plain)).toBe('The place does not speak TLS at this address')
  expect(s3.front.seen.length).toBe(seen)
})

test('certificates of an own authority that cannot be read are refused when they are tested or saved', async () => {
  const sentence =
    'The certificates of your own authority cannot be read: enter them in PEM form, each from BEGIN to END CERTIFICATE'
  const noise = '-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n'
  const cut = tls.ca.slice(0, -40)
  const key = '-----BEGIN PRIVATE KEY-----\nbm90IGZvciBoZXJl\n-----END PRIVATE KEY-----\n'
  const place = { name: 'misspelt', kind: 'webdav' }
  for (const ca of ['a certificate', noise, cut, `${tls.ca}${noise}`, `${tls.ca}${cut}`, `${key}${tls.ca}`]) {
    const settings = dav('dav.test', ca)
    const tested = await here.admin.send('POST', '/api/system/copies/test', { kind: 'webdav', settings })
    expect(Object(await tested.json()).problem, ca).toBe(sentence)
    const saved = await here.admin.send('POST', '/api/system/copies', { ...place, settings })
    expect([saved.status, Object(await saved.json()).detail], ca).toEqual([400, sentence])
    here.app.clock.advance(60_000)
  }
  const two = `# an own one\r\n${`${tls.ca}${tls.otherCa}`.replaceAll('\n', '\r\n')}`
  const id = await here.add('two', 'webdav', dav('dav.test', two))
  const changed = await here.admin.send('PUT', `/api/system/copies/${id}`, { settings: { ca: noise } })
  expect([changed.status, Object(await changed.json()).detail]).toEqual([400, sentence])
})
