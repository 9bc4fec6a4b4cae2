import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { createProviders } from '../../../../src/app/accounts/oidc/oidc.ts'
import { parseConfig } from '../../../../src/app/config/config.ts'
import { createTestApp } from '../../../support/app.ts'

const DOCS = readFileSync('docs/openid-connect.md', 'utf8')

/** The variables of the sample below a heading, as they are printed, without comments. */
function sampleOf(heading: string): Record<string, string> {
  const [, section = ''] = DOCS.split(`\n${heading}\n`)
  const [, block = ''] = section.split('```')
  const lines = block.split('\n').flatMap((line) => /^(\w+)=(.*?)(?:\s+#.*)?$/.exec(line) ?? [])
  return Object.fromEntries(
    Array.from({ length: lines.length / 3 }, (_, i) => [lines[i * 3 + 1] ?? '', lines[i * 3 + 2] ?? '']),
  )
}

test('the sample for several providers starts as printed', async () => {
  const env = sampleOf('### Several providers')
  const read = parseConfig(env)
  expect(read.ok ? [] : read.problems).toEqual([])
  const app = await createTestApp({ env })
  const status = Object(await (await app.request('/api/auth/status')).json())
  expect(status.providers).toEqual([
    { id: 'club', name: 'the club', icon: null },
    { id: 'office', name: 'the office', icon: null },
  ])
  if (!read.ok) throw new Error('checked above')
  createProviders({ config: read.config, log: app.ports.log, now: app.ports.now })
  const told = app.logged.filter((line) => line.includes('Redirect URI to register'))
  const plain = 'https://mesh.example.org/api/auth/oidc/callback'
  for (const [i, uri] of [plain, `${plain}/office`].entries())
    expect(told.at(i - 2)).toContain(`"redirectUri":"${uri}"`)
  app.close()
})

test('the sample for groups is valid beside a provider', () => {
  const read = parseConfig({ ...sampleOf('### Several providers'), ...sampleOf('## Groups') })
  // Groups are those of the plain provider, which the first sample does not have.
  expect(read.ok ? [] : read.problems).toEqual([])
  const whole = {
    OIDC_ENABLED: 'true',
    OIDC_ISSUER: 'https://id.example',
    OIDC_CLIENT_ID: 'mesh',
    OIDC_CLIENT_SECRET: 'secret',
    OIDC_REDIRECT_URI: 'https://mesh.example.org/api/auth/oidc/callback',
  }
  expect(parseConfig({ ...whole, ...sampleOf('## Groups') })).toMatchObject({
    ok: true,
    config: { OIDC_PROVIDERS: [{ groupsClaim: 'groups', allowedGroups: ['mesh'], adminGroups: ['mesh-admins'] }] },
  })
})
