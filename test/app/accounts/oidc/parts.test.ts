import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createAllowance } from '../../../../src/app/accounts/oidc/protocol/allowance.ts'
import { wrongClaim } from '../../../../src/app/accounts/oidc/protocol/claims.ts'
import { readMetadata } from '../../../../src/app/accounts/oidc/protocol/discovery.ts'
import { profileOf, suffixed } from '../../../../src/app/accounts/oidc/protocol/profile.ts'
import { sitePath } from '../../../../src/app/accounts/oidc/return-to.ts'
import { parseConfig } from '../../../../src/app/config/config.ts'

describe('the target after a sign-in', () => {
  test.each([
    ['/', '/'],
    ['/nodes', '/nodes'],
    ['/nodes?sort=name&dir=up#top', '/nodes?sort=name&dir=up#top'],
    ['/search?q=100%25', '/search?q=100%25'],
    ['/search?next=//elsewhere', '/search?next=//elsewhere'],
    ['/a%20b', '/a%20b'],
    ['/ä', '/%C3%A4'],
    ['/a/../b', '/b'],
    ['/@user', '/@user'],
    ['/100%', '/100%'],
  ])('%j is a path of this site', (wanted, path) => {
    expect(sitePath(wanted)).toBe(path)
  })

  test.each([
    undefined,
    '',
    'nodes',
    '//evil.example',
    '///evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    '/\t/evil.example',
    '/\n/evil.example',
    '\t//evil.example',
    ' //evil.example',
    '/%2Fevil.example',
    '/%2f/evil.example',
    '/%5Cevil.example',
    '/%255Cevil.example',
    '/%252Fevil.example',
    '/%25252Fevil.example',
    '/%09/evil.example',
    '/..//evil.example',
    '/%2e%2e//evil.example',
    '/a/..//evil.example',
    'https://evil.example',
    'https:evil.example',
    'http://site.invalid/nodes',
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'java\nscript:alert(1)',
    'data:text/html,x',
    '%2F%2Fevil.example',
    '/nodes\r\nSet-Cookie: x=y',
    '/nodes%0d%0aSet-Cookie: x=y',
    '/nodes\u0000',
    '/\ud800',
    `/${'x'.repeat(1024)}`,
    '/api/auth/oidc/login',
    '/api/auth/oidc/login?returnTo=/',
    '/api/./auth/oidc/callback',
    '/api/auth/%6fidc/login',
  ])('%j is not a path of this site', (wanted) => {
    expect(sitePath(wanted)).toBeNull()
  })
})

describe('a discovery document', () => {
  const names = ['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'userinfo_endpoint', 'end_session_endpoint']
  const documentOf = (issuer: string, origin = issuer) =>
    Object.fromEntries([['issuer', issuer], ...names.map((name) => [name, `${origin}/${name}`])])

  test.each(['https://id.example', 'https://id.example:8443/realms/x', 'http://127.0.0.1:9000', 'http://[::1]:9000'])(
    'of %s is read completely',
    (issuer) => {
      expect(readMetadata(issuer, documentOf(issuer))).toMatchObject(documentOf(issuer))
    },
  )

  test.each(names)('of another machine may not point its %s at this machine', (name) => {
    const issuer = 'https://id.example'
    const document = { ...documentOf(issuer), [name]: 'http://127.0.0.1:6379/x' }
    expect(() => readMetadata(issuer, document)).toThrow(
      expect.objectContaining({ reason: 'discovery_invalid', details: { fields: name } }),
    )
  })

  test.each(['https://ID.example', 'https://id.example/', 'https://id.example:443', 'https://id.example/realms/x'])(
    'of %s does not belong to https://id.example',
    (issuer) => {
      expect(() => readMetadata('https://id.example', documentOf(issuer, 'https://id.example'))).toThrow(
        expect.objectContaining({ reason: 'discovery_issuer_wrong' }),
      )
    },
  )
})

describe('the claims of an ID token', () => {
  const expected = {
    issuer: 'https://id.example',
    clientId: 'mesh',
    nonce: 'n',
    atHashes: ['h', 'i'],
    now: 1_000_000_000,
  }
  const good = { iss: 'https://id.example', sub: 's', aud: 'mesh', nonce: 'n', exp: 1_000_100, iat: 1_000_000 }

  test.each([
    ['good', {}, null],
    ['exp a second within the leeway', { exp: 999_941 }, null],
    ['exp at its end', { exp: 999_940 }, 'claim_exp'],
    ['exp infinite', { exp: Infinity }, 'claim_exp'],
    ['exp not a number', { exp: Number.NaN }, 'claim_exp'],
    ['iat at the end of the leeway', { iat: 1_000_060 }, null],
    ['iat beyond it', { iat: 1_000_060.5 }, 'claim_iat'],
    ['iat at the age limit of an attempt', { iat: 999_340 }, null],
    ['iat older', { iat: 999_339 }, 'claim_iat'],
    ['nbf at the end of the leeway', { nbf: 1_000_060 }, null],
    ['nbf beyond it', { nbf: 1_000_061 }, 'claim_nbf'],
    ['nbf null', { nbf: null }, 'claim_nbf'],
    ['a subject of 255 characters', { sub: 'x'.repeat(255) }, null],
    ['a subject of 256', { sub: 'x'.repeat(256) }, 'claim_sub'],
    ['a list of audiences', { aud: ['mesh', 'mesh'] }, null],
    ['further audiences of a token that was issued to this client', { aud: ['project', 'mesh'], azp: 'mesh' }, null],
    ['further audiences without azp', { aud: ['mesh', 'project'] }, 'claim_aud'],
    ['further audiences and a foreign azp', { aud: ['mesh', 'project'], azp: 'project' }, 'claim_aud'],
    ['azp of this client among foreign audiences only', { aud: ['project'], azp: 'mesh' }, 'claim_aud'],
    ['a foreign audience as text, azp of this client', { aud: 'project', azp: 'mesh' }, 'claim_aud'],
    ['a further audience that is not a string', { aud: ['mesh', 7], azp: 'mesh' }, 'claim_aud'],
    ['a nested list of audiences', { aud: [['mesh']] }, 'claim_aud'],
    ['an audience that differs in case', { aud: 'MESH' }, 'claim_aud'],
    ['azp null', { azp: null }, 'claim_azp'],
    ['azp as a list', { azp: ['mesh'] }, 'claim_azp'],
    ['the right at_hash', { at_hash: 'h' }, null],
    ['the at_hash of another hash', { at_hash: 'i' }, null],
    ['a wrong at_hash', { at_hash: 'hi' }, 'claim_at_hash'],
    ['an empty at_hash', { at_hash: '' }, 'claim_at_hash'],
    ['at_hash as a list', { at_hash: ['h'] }, 'claim_at_hash'],
    ['at_hash null', { at_hash: null }, 'claim_at_hash'],
  ])('%s', (_what, change, wrong) => {
    expect(wrongClaim({ ...good, ...change }, expected)).toBe(wrong)
  })

  const anything = fc.oneof(fc.anything(), fc.string(), fc.double(), fc.constantFrom(undefined, null, '', 0, [], {}))
  const notText = anything.filter((value) => typeof value !== 'string')
  const notNumber = anything.filter((value) => typeof value !== 'number')
  const given = anything.filter((value) => value !== undefined)
  const outside = (least: number, most: number) =>
    fc.oneof(fc.double({ max: least, maxExcluded: true }), fc.double({ min: most, minExcluded: true, noNaN: true }))
  const controls = fc.constantFrom('\0', '\n', '\u007f', '\u0085', '\ud800', '\udfff')

  /** By claim: values that make an otherwise good token invalid. */
  const mutations = {
    iss: anything.filter((value) => value !== good.iss),
    sub: fc.oneof(
      notText,
      fc.string({ minLength: 256, maxLength: 300 }),
      fc.tuple(fc.string(), controls, fc.string()).map((parts) => parts.join('x')),
    ),
    aud: fc.oneof(
      anything.filter((value) => value !== good.aud && !Array.isArray(value)),
      fc.array(anything.filter((value) => value !== good.aud)),
      fc
        .array(
          given.filter((value) => value !== good.aud),
          { minLength: 1 },
        )
        .map((others) => [good.aud, ...others]),
    ),
    azp: given.filter((value) => value !== expected.clientId),
    exp: fc.oneof(notNumber, fc.double({ max: 999_940 }), fc.constantFrom(Infinity, Number.NaN)),
    iat: fc.oneof(notNumber, outside(999_340, 1_000_060)),
    nbf: fc.oneof(
      given.filter((value) => typeof value !== 'number'),
      fc.double({ min: 1_000_060, minExcluded: true }),
    ),
    nonce: anything.filter((value) => value !== good.nonce),
    at_hash: given.filter((value) => typeof value !== 'string' || !expected.atHashes.includes(value)),
  } as const
  const isChecked = (name: string) => Object.hasOwn(mutations, name)
  const unchecked = fc.dictionary(
    fc
      .oneof(
        fc.string(),
        fc.constantFrom('email', 'acr', 'auth_time', 'jti', 'sid', 'c_hash', 'groups', '__proto__', 'ISS', 'Nonce'),
      )
      .filter((name) => !isChecked(name)),
    anything,
  )
  /** A token that stays valid whatever else it contains. */
  const goodClaims = fc
    .tuple(
      unchecked,
      fc.record(
        {
          sub: fc.stringMatching(/^[\w|:.@-]{1,255}$/),
          exp: fc.integer({ min: 999_941 }),
          iat: fc.integer({ min: 999_340, max: 1_000_060 }),
          nbf: fc.integer({ max: 1_000_060 }),
          azp: fc.constant(expected.clientId),
          at_hash: fc.constantFrom(...expected.atHashes),
          aud: fc.constantFrom('mesh', ['mesh'], ['mesh', 'mesh']),
        },
        { requiredKeys: [] },
      ),
    )
    .map(([more, right]) => ({ ...more, ...good, ...right }))

  test('stay valid with any other claims beside them', () => {
    fc.assert(
      fc.property(goodClaims, (claims) => {
        expect(wrongClaim(claims, expected)).toBeNull()
      }),
    )
  })

  test.each(Object.entries(mutations))('become invalid with any other %s', (name, wrong) => {
    fc.assert(
      fc.property(goodClaims, wrong, (claims, value) => {
        // Further audiences are valid if `azp` says so; other cases cover that.
        const { azp: _azp, ...others } = claims
        const rest = name === 'aud' ? others : claims
        expect(wrongClaim({ ...rest, [name]: value }, expected)).toBe(`claim_${name}`)
      }),
    )
  })
})

describe('the profile', () => {
  test.each([
    [{ preferred_username: 'anna' }, 'anna'],
    [{ preferred_username: 'Änna Müller' }, 'Anna-Muller'],
    [{ preferred_username: 'anna@corp.example' }, 'anna@corp.example'],
    [{ preferred_username: 'Anna@example.org', email: 'anna@example.org' }, 'anna'],
    [{ email: 'anna.berg+mesh@example.org' }, 'anna.berg-mesh'],
    [{ email: 'no address', name: 'Anna Berg' }, 'Anna-Berg'],
    [{ preferred_username: '<script>' }, 'script'],
    [{ preferred_username: '../../etc' }, 'etc'],
    [{ preferred_username: 'an\u0000\u202ena\n' }, 'anna'],
    [{ preferred_username: 'x'.repeat(10_000) }, 'x'.repeat(64)],
    [{ preferred_username: '山田', nickname: 'yama' }, 'yama'],
    [{ preferred_username: '山田' }, 'user'],
    [{ preferred_username: { anna: true }, name: 5, email: [] }, 'user'],
    [{}, 'user'],
  ])('%j makes the username %j', (claims, username) => {
    expect(profileOf(claims).username).toBe(username)
  })

  test.each([
    [{ name: '  Anna Berg ' }, 'Anna Berg'],
    [{ name: 'An\u0007na\u202e \u2066Berg' }, 'Anna Berg'],
    [{ name: 'x'.repeat(10_000) }, 'x'.repeat(100)],
    [{ name: `${'x'.repeat(99)}😀` }, 'x'.repeat(99)],
    [{ name: 'A\ud800B' }, 'AB'],
    [{ given_name: 'Anna', family_name: 'Berg' }, 'Anna Berg'],
    [{ name: '\n', preferred_username: 'anna' }, 'anna'],
    [{ name: 7 }, null],
  ])('%j makes the display name %j', (claims, displayName) => {
    expect(profileOf(claims).displayName).toBe(displayName)
  })

  test.each([
    ['anna@example.org', 'anna@example.org'],
    ['anna@example.org\n', null],
    ['<b>@example.org', null],
    [`${'x'.repeat(300)}@example.org`, null],
    [7, null],
  ])('%j makes the e-mail address %j', (email, expected) => {
    expect(profileOf({ email }).email).toBe(expected)
  })

  test('a suffix fits within the limit', () => {
    expect(suffixed('anna', '2')).toBe('anna-2')
    expect(suffixed('x'.repeat(64), '123')).toBe(`${'x'.repeat(60)}-123`)
  })
})

test('an allowance refills only up to its size', () => {
  let now = 0
  const { take } = createAllowance(2, 1000, () => now)
  const taken = (times: number) => Array.from({ length: times }, take).filter(Boolean).length
  expect(taken(5)).toBe(2)
  now = 999
  expect(taken(5)).toBe(0)
  now = 1000
  expect(taken(5)).toBe(1)
  now = 100_000
  expect(taken(5)).toBe(2)
  now = 50_000
  expect(taken(5)).toBe(0)
})

test('what is given back to an allowance can be taken once more', () => {
  const { take, giveBack } = createAllowance(2, 1000, () => 0)
  giveBack()
  expect([take(), take(), take()]).toEqual([true, true, false])
  giveBack()
  expect([take(), take()]).toEqual([true, false])
})

describe('the settings', () => {
  const whole = {
    OIDC_ENABLED: 'true',
    OIDC_ISSUER: 'https://id.example/realms/mesh/',
    OIDC_CLIENT_ID: 'mesh',
    OIDC_CLIENT_SECRET: ' secret ',
    OIDC_REDIRECT_URI: 'https://mesh.example.org/api/auth/oidc/callback',
  }

  test('are taken unchanged', () => {
    expect(parseConfig(whole)).toMatchObject({
      ok: true,
      config: {
        OIDC_ISSUER: 'https://id.example/realms/mesh/',
        OIDC_CLIENT_SECRET: ' secret ',
        OIDC_SCOPES: ['openid', 'profile', 'email'],
        OIDC_AUTO_CREATE_USERS: true,
      },
    })
    expect(parseConfig({ ...whole, OIDC_SCOPES: ' groups  openid ' })).toMatchObject({
      config: { OIDC_SCOPES: ['openid', 'groups'] },
    })
    expect(parseConfig({ ...whole, OIDC_ISSUER: 'http://localhost:9000', DISABLE_LOCAL_AUTH: 'true' }).ok).toBe(true)
  })

  test.each(['OIDC_ISSUER', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET', 'OIDC_REDIRECT_URI'])(
    'without %s stop the start and name the missing variable',
    (name) => {
      const found = parseConfig({ ...whole, [name]: '' })
      expect(found).toEqual({
        ok: false,
        problems: [expect.stringMatching(`^${name}: found nothing, expected .* because OIDC_ENABLED is true$`)],
      })
    },
  )

  test('report all problems at once, one per line', () => {
    const found = parseConfig({
      OIDC_ENABLED: 'true',
      OIDC_ISSUER: 'http://id.example',
      PORT: 'x',
      OIDC_CLIENT_ID: 'a',
    })
    const names = found.ok ? [] : found.problems.map((line) => line.split(':')[0])
    expect(names).toEqual(['PORT', 'OIDC_ISSUER', 'OIDC_CLIENT_SECRET', 'OIDC_REDIRECT_URI'])
  })

  test.each([
    ['OIDC_ISSUER', 'http://id.example'],
    ['OIDC_ISSUER', 'id.example'],
    ['OIDC_ISSUER', 'https://id.example?x=1'],
    ['OIDC_ISSUER', 'https://id.example#x'],
    ['OIDC_ISSUER', ' https://id.example'],
    ['OIDC_ISSUER', 'https://user:pass@id.example'],
    ['OIDC_REDIRECT_URI', '/api/auth/oidc/callback'],
    ['OIDC_REDIRECT_URI', 'https://mesh.example.org/api/auth/oidc/callback#x'],
    ['OIDC_SCOPES', 'openid "all"'],
    ['OIDC_AUTO_CREATE_USERS', 'maybe'],
    ['OIDC_ENABLED', 'yes'],
  ])('%s=%s stops the start', (name, value) => {
    const found = parseConfig({ ...whole, [name]: value })
    expect(found.ok ? [] : found.problems[0]).toContain(`${name}: found ${JSON.stringify(value)}, expected `)
  })

  test('are separate for each named provider, except for the rule of who gets an account', () => {
    const named = {
      OIDC_PROVIDERS: 'club',
      OIDC_CLUB_ISSUER: 'https://club.example',
      OIDC_CLUB_CLIENT_ID: 'club',
      OIDC_CLUB_CLIENT_SECRET: 'other',
    }
    const admins = { OIDC_GROUPS_CLAIM: 'groups', OIDC_ADMIN_GROUPS: 'admins', OIDC_AUTO_CREATE_USERS: 'false' }
    const found = parseConfig({ ...whole, ...admins, ...named })
    expect(found.ok && found.config.OIDC_PROVIDERS).toMatchObject([
      { id: 'default', adminGroups: ['admins'], autoCreateUsers: false },
      {
        id: 'club',
        issuer: 'https://club.example',
        clientSecret: 'other',
        redirectUri: `${whole.OIDC_REDIRECT_URI}/club`,
        adminGroups: [],
        groupsClaim: null,
        autoCreateUsers: false,
      },
    ])
    const alone = parseConfig({ ...named, OIDC_ENABLED: 'true', OIDC_REDIRECT_URI: whole.OIDC_REDIRECT_URI })
    expect(alone.ok && alone.config.OIDC_PROVIDERS.map(({ id }) => id)).toEqual(['club'])
    const broken = (env: Record<string, string>) => {
      const read = parseConfig({ ...whole, ...named, ...env })
      return read.ok ? [] : read.problems.map((line) => line.split(':')[0])
    }
    expect(broken({})).toEqual([])
    expect(broken({ OIDC_CLUB_CLIENT_SECRET: '' })).toEqual(['OIDC_CLUB_CLIENT_SECRET'])
    expect(broken({ OIDC_CLUB_SCOPES: '"' })).toEqual(['OIDC_CLUB_SCOPES'])
    expect(broken({ OIDC_CLUB_ISSUER: whole.OIDC_ISSUER })).toEqual(['OIDC_CLUB_ISSUER'])
    expect(broken({ OIDC_CLUB_ADMIN_GROUPS: 'x' })).toEqual(['OIDC_CLUB_GROUPS_CLAIM'])
    for (const name of ['Club', 'my-club', 'default', 'a_b']) {
      expect(broken({ OIDC_PROVIDERS: name })).toEqual(['OIDC_PROVIDERS'])
    }
  })

  test('each provider has an address of its own: the first one the plain one, the others below it', () => {
    const club = {
      OIDC_PROVIDERS: 'club,office',
      OIDC_CLUB_ISSUER: 'https://club.example',
      OIDC_CLUB_CLIENT_ID: 'club',
      OIDC_CLUB_CLIENT_SECRET: 'other',
      OIDC_OFFICE_ISSUER: 'https://office.example',
      OIDC_OFFICE_CLIENT_ID: 'office',
      OIDC_OFFICE_CLIENT_SECRET: 'another',
    }
    const addresses = (env: Record<string, string>) => {
      const read = parseConfig({ ...whole, ...club, ...env })
      return read.ok ? read.config.OIDC_PROVIDERS.map(({ redirectUri }) => redirectUri) : read.problems
    }
    const plain = whole.OIDC_REDIRECT_URI
    expect(addresses({})).toEqual([plain, `${plain}/club`, `${plain}/office`])
    expect(addresses({ OIDC_ISSUER: '', OIDC_CLIENT_ID: '', OIDC_CLIENT_SECRET: '' })).toEqual([
      plain,
      `${plain}/office`,
    ])
    const below = 'https://example.org/mesh/api/auth/oidc/callback'
    expect(addresses({ OIDC_REDIRECT_URI: `${below}/default` })).toEqual([
      `${below}/default`,
      `${below}/club`,
      `${below}/office`,
    ])
    expect(addresses({ OIDC_CLUB_REDIRECT_URI: `${below}/club` })[1]).toBe(`${below}/club`)
    const why = 'each provider has its own address'
    for (const wrong of [plain, `${plain}/office`, `${plain}/default`]) {
      expect(addresses({ OIDC_CLUB_REDIRECT_URI: wrong })).toEqual([
        `OIDC_CLUB_REDIRECT_URI: found "${wrong}", expected ${plain}/club: ${why}`,
      ])
    }
    expect(addresses({ OIDC_REDIRECT_URI: `${plain}/club` })[0]).toBe(
      `OIDC_REDIRECT_URI: found "${plain}/club", expected ${plain}/default or ${plain}: ${why}`,
    )
    // A proxy that routes other addresses here: they must be given, and differ.
    const own = 'https://sso.example.org/mesh'
    expect(addresses({ OIDC_REDIRECT_URI: own })).toEqual([
      expect.stringMatching(/^OIDC_CLUB_REDIRECT_URI: found nothing/),
      expect.stringMatching(/^OIDC_OFFICE_REDIRECT_URI: found nothing/),
    ])
    expect(
      addresses({
        OIDC_REDIRECT_URI: own,
        OIDC_CLUB_REDIRECT_URI: `${own}/c`,
        OIDC_OFFICE_REDIRECT_URI: `${own}/c`,
      }),
    ).toEqual([`OIDC_OFFICE_REDIRECT_URI: found "${own}/c", expected another one than OIDC_CLUB_REDIRECT_URI`])
  })

  test('an http issuer on a private network must be permitted, and no other http issuer can be', () => {
    const parse = (issuer: string, permitted: string) =>
      parseConfig({ ...whole, OIDC_ISSUER: issuer, OIDC_ALLOW_INSECURE_ISSUER: permitted })
    for (const issuer of ['http://192.168.1.5:8080', 'http://authelia:9091', 'http://id.home.arpa/x']) {
      const refused = parse(issuer, 'false')
      expect(refused.ok ? [] : refused.problems).toHaveLength(1)
      expect(parse(issuer, 'true').ok).toBe(true)
    }
    for (const issuer of ['http://id.example', 'http://8.8.8.8', 'http://u:p@192.168.1.5']) {
      expect(parse(issuer, 'true').ok).toBe(false)
    }
  })

  test('OIDC-only sign-in requires OpenID Connect to be enabled', () => {
    const line = 'DISABLE_LOCAL_AUTH: found "true", expected false because OIDC_ENABLED is not true'
    expect(parseConfig({ DISABLE_LOCAL_AUTH: 'true' })).toEqual({ ok: false, problems: [line] })
  })
})
