import { expect, test } from 'vitest'
import { namesOfVariables, parseConfig, VARIABLES } from '../../../src/app/config/config.ts'
import { findUnknown } from '../../../src/app/config/unknown.ts'

function problems(env: Record<string, string>): string[] {
  const parsed = parseConfig(env)
  return parsed.ok ? [] : parsed.problems
}

function config(env: Record<string, string> = {}) {
  const parsed = parseConfig(env)
  if (!parsed.ok) throw new Error(parsed.problems.join('\n'))
  return parsed.config
}

test('every variable has a default', () => {
  expect(config()).toMatchObject({
    PORT: 8080,
    HOST: '0.0.0.0',
    DATA_DIR: './data',
    PUBLIC_URL: null,
    TRUSTED_PROXIES: [],
    SESSION_SECRET: [],
    SESSION_IDLE_TIMEOUT_SECONDS: 86_400,
    SESSION_ABSOLUTE_TIMEOUT_SECONDS: 2_592_000,
    SESSION_STORE: 'database',
    COOKIE_SECURE: 'auto',
    ADMIN_USERNAME: 'admin',
    ADMIN_PASSWORD: null,
    DISABLE_LOCAL_AUTH: false,
    PASSWORD_MIN_LENGTH: 15,
    LOGIN_MAX_FAILURES: 10,
    LOGIN_WINDOW_SECONDS: 900,
    LOG_LEVEL: 'info',
    LOG_FORMAT: null,
    TZ: null,
  })
  expect(Object.keys(config()).toSorted()).toStrictEqual(Object.keys(VARIABLES).toSorted())
})

test('an empty value counts as unset, and an unknown variable is ignored', () => {
  const empty = Object.fromEntries(Object.keys(VARIABLES).map((name) => [name, '']))
  expect(config({ ...empty, UNKNOWN: 'x' })).toStrictEqual(config())
})

test.each([
  ['PORT', '0', 0],
  ['PORT', '65535', 65_535],
  ['PUBLIC_URL', 'https://mesh.example.org/base/', 'https://mesh.example.org/base'],
  ['TRUSTED_PROXIES', '10.0.0.0/8, 192.0.2.1,::1,2001:db8::/32', ['10.0.0.0/8', '192.0.2.1', '::1', '2001:db8::/32']],
  ['SESSION_SECRET', `${'a'.repeat(32)}, ${'b'.repeat(40)},`, ['a'.repeat(32), 'b'.repeat(40)]],
  ['DISABLE_LOCAL_AUTH', 'false', false],
  ['TZ', 'Europe/Berlin', 'Europe/Berlin'],
  ['PASSWORD_MIN_LENGTH', '64', 64],
  ['COLLECTOR_NAME', 'hill-2', 'hill-2'],
  ['COLLECTOR_ONLY', 'messages, nodes', ['messages', 'nodes']],
  ['COLLECTOR_SAMPLE_SECONDS', '900', 900],
])('%s=%s gives %j', (name, text, value) => {
  expect(Object(config({ [name]: text }))[name]).toStrictEqual(value)
})

test.each([
  ['PORT', '65536'],
  ['PORT', '-1'],
  ['PORT', '80 '],
  ['PORT', '8e1'],
  ['PORT', '0x50'],
  ['PUBLIC_URL', 'mesh.example.org'],
  ['PUBLIC_URL', 'ftp://mesh.example.org'],
  ['PUBLIC_URL', 'javascript:alert(1)'],
  ['TRUSTED_PROXIES', 'proxy.example.org'],
  ['TRUSTED_PROXIES', '10.0.0.0/33'],
  ['TRUSTED_PROXIES', '10.0.0.1,'.repeat(2) + '10.0.0.256'],
  ['TRUSTED_PROXIES', '10.0.0.0/8/8'],
  ['TRUSTED_PROXIES', '*'],
  ['TRUSTED_PROXIES', ','],
  ['SESSION_IDLE_TIMEOUT_SECONDS', '59'],
  ['SESSION_ABSOLUTE_TIMEOUT_SECONDS', '1.5'],
  ['SESSION_STORE', 'Redis'],
  ['COOKIE_SECURE', 'yes'],
  ['ADMIN_USERNAME', 'with space'],
  ['DISABLE_LOCAL_AUTH', '1'],
  ['PASSWORD_MIN_LENGTH', '7'],
  ['PASSWORD_MIN_LENGTH', '65'],
  ['LOGIN_MAX_FAILURES', '0'],
  ['LOGIN_WINDOW_SECONDS', '86401'],
  ['LOG_LEVEL', 'trace'],
  ['LOG_FORMAT', 'text'],
  ['TZ', 'Middle/Earth'],
  ['REDIS_PREFIX', 'mesh'],
  ['REDIS_PREFIX', 'mesh:club:'],
  ['REDIS_PREFIX', 'me*h:'],
  ['PORT', 'a\nb'],
])('%s=%j gives one line: the variable, the value found, and what is expected', (name, text) => {
  const lines = problems({ [name]: text })
  expect(lines).toHaveLength(1)
  expect(lines[0]).toMatch(new RegExp(`^${name}: found ".*", expected [^\\n]+$`))
  expect(lines[0]).toContain(`found ${JSON.stringify(text)}, expected`)
})

test.each([
  ['SESSION_SECRET', 'hunter2-is-too-short'],
  ['SESSION_SECRET', `${'a'.repeat(32)},hunter2`],
  ['SESSION_SECRET', ' , '],
  ['REDIS_URL', 'http://:hunter2@localhost'],
  ['MAP_TILE_URL', 'https://hunter2:x@tiles.example.org/{z}/{x}/{y}.png'],
  ['MAP_TILE_URL', 'http://tiles.example.org/{z}/{x}/{y}.png'],
  ['MAP_TILE_URL', 'https://tiles.example.org/{z}/{x}.png'],
  ['MAP_TILE_URL', 'https://tiles.example.org/{z}/{x}/{y}/{y}.png'],
  ['MAP_TILE_URL', 'https://{s}.tiles.example.org/{z}/{x}/{y}.png'],
  ['MAP_TILE_URL', 'https://{x}.example.org/{z}/{y}.png'],
  ['MAP_TILE_URL', 'https://a;script-src.example.org/{z}/{x}/{y}.png'],
  ['MAP_TILE_URL', 'https://a,b.example.org/{z}/{x}/{y}.png'],
  ['MAP_TILE_URL', '//tiles.example.org/{z}/{x}/{y}.png'],
  ['MAP_TILE_URL', '/\\tiles.example.org/{z}/{x}/{y}.png'],
  ['MAP_TILE_URL', 'javascript:{z}{x}{y}'],
])('%s=%j is refused without showing the value', (name, text) => {
  const lines = problems({ [name]: text })
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain(`${name}: found (not shown), expected `)
  expect(lines[0]).not.toMatch(/hunter2|aaaa/)
})

test('all problems are reported at once, each on its line', () => {
  const env = { PORT: 'x', TRUSTED_PROXIES: 'x,y,z', LOG_LEVEL: 'x', SESSION_SECRET: 'x' }
  expect(problems(env).map((line) => line.split(':')[0])).toStrictEqual([
    'PORT',
    'TRUSTED_PROXIES',
    'SESSION_SECRET',
    'LOG_LEVEL',
  ])
})

test.each([
  ['https://mesh.example.org/', true],
  ['https://mesh.example.org/base', true],
  ['http://127.0.0.1:8080', true],
  ['http://192.168.1.20:8080', true],
  ['http://10.1.2.3', true],
  ['http://172.31.0.1', true],
  ['http://[fd00::1]:8080', true],
  ['http://mesh:8080', true],
  ['http://mesh.local', true],
  ['http://mesh.example.org', false],
  ['http://172.32.0.1', false],
  ['http://192.168.1.20.example.org', false],
  ['http://[2001:db8::1]', false],
  ['https://user:password@mesh.example.org', false],
  ['https://mesh.example.org/?x=1', false],
  ['ftp://mesh.example.org', false],
])('COLLECTOR_TARGET_URL=%s is accepted: %s', (COLLECTOR_TARGET_URL, isTaken) => {
  const result = parseConfig({ COLLECTOR_TARGET_URL, COLLECTOR_TOKEN: `mm_${'t'.repeat(43)}` })
  expect(result.ok || result.problems.length).toBe(isTaken || 1)
})

test('the token of a collector appears in no line', () => {
  const COLLECTOR_TARGET_URL = 'https://mesh.example.org'
  expect(parseConfig({ COLLECTOR_TARGET_URL })).toMatchObject({
    problems: [expect.stringMatching(/^COLLECTOR_TOKEN: found nothing/)],
  })
  expect(parseConfig({ COLLECTOR_TARGET_URL, COLLECTOR_TOKEN: 'mm_short' })).toMatchObject({
    problems: ['COLLECTOR_TOKEN: found (not shown), expected an API token of that service'],
  })
})

test('values that contradict each other are a problem too', () => {
  expect(problems({ SESSION_STORE: 'redis' })).toStrictEqual([
    'REDIS_URL: found nothing, expected a redis:// or rediss:// URL because SESSION_STORE is redis',
  ])
  expect(problems({ DISABLE_LOCAL_AUTH: 'true' })).toHaveLength(1)
  expect(problems({ MAP_PMTILES: 'map.pmtiles', MAP_TILE_URL: '/{z}/{x}/{y}.png' })).toStrictEqual([
    'MAP_PMTILES: found a file, expected nothing because MAP_TILE_URL is set',
  ])
})

test('names unknown variables that look like ours, with the nearest known one and never with their value', () => {
  const env = {
    OIDC_ISUER: 'l3aked',
    OIDC_PROVIDERS: 'acme',
    OIDC_ACME_ISSUER: 'https://id.example.org',
    OIDC_CLUB_ISSUER: 'https://club.example.org',
    MESHTASTIC_TPC: 'l3aked',
    BACKUP_TIME: 'l3aked',
    RESTORE_FROM: 'l3aked',
    SESION_SECRET: 'l3aked',
    SMTP_URL_FILE: '/run/secrets/smtp',
    SMTP_FROM_FILE: '/run/secrets/from',
    ADMIN_: '',
    REDIS_PORT_6379_TCP: 'of docker',
    PATH: '/usr/bin',
    HOSTNAME: 'box',
    OIDC_CLIENT_ID: 'known',
  }
  const found = findUnknown(env, namesOfVariables(env))
  expect(JSON.stringify(found)).not.toContain('l3aked')
  expect(Object.fromEntries(found.map(({ name, hint }) => [name, hint]))).toStrictEqual({
    OIDC_ISUER: 'did you mean OIDC_ISSUER?',
    OIDC_CLUB_ISSUER: 'OIDC_PROVIDERS does not name club',
    MESHTASTIC_TPC: 'did you mean MESHTASTIC_TCP?',
    BACKUP_TIME: null,
    RESTORE_FROM: 'did you mean RESTORE_FROM_BACKUP?',
    SESION_SECRET: 'did you mean SESSION_SECRET?',
    SMTP_FROM_FILE: 'did you mean SMTP_FROM?',
  })
})

test('a refusal shows the beginning of a long value only', () => {
  const [line = ''] = problems({ PORT: 'x'.repeat(100_000) })
  expect(line.length).toBeLessThan(250)
  expect(line).toContain('(100000 characters)')
})

test('nor does it repeat long values that contradict each other', () => {
  const long = 'x'.repeat(100_000)
  const env = {
    OIDC_ENABLED: 'true',
    OIDC_CLIENT_ID: 'mesh',
    OIDC_CLIENT_SECRET: 'secret',
    OIDC_ISSUER: 'https://id.example.org',
    OIDC_REDIRECT_URI: `https://mesh.example.org/${long}/api/auth/oidc/callback/club`,
    OIDC_PROVIDERS: 'club',
    OIDC_CLUB_ISSUER: 'https://id.example.org',
    OIDC_CLUB_CLIENT_ID: 'mesh',
    OIDC_CLUB_CLIENT_SECRET: 'secret',
  }
  const lines = problems(env)
  expect(lines).toHaveLength(2)
  expect(lines[0]).toMatch(
    /^OIDC_REDIRECT_URI: found "https:\S*"… \(10\d{4} characters\), expected https:\S*…\/api\S* or https:\S*: each provider/,
  )
  for (const line of lines) expect(line.length).toBeLessThan(500)
})

test.each(['0', '-1', 'null', 'none', 'false', '4403', 'off'])('MESHTASTIC_TCP=%s is refused', (value) => {
  expect(problems({ MESHTASTIC_TCP: value })).toStrictEqual([
    `MESHTASTIC_TCP: found ${JSON.stringify(value)}, expected host or host:port, comma-separated`,
  ])
})
