import { join } from 'node:path'
import { expect } from 'vitest'
import { audit, SYSTEM } from '../../../src/app/audit/audit.ts'
import { storeRestoredAccess } from '../../../src/app/system/restore/restored-access.ts'
import { type ImportReport, keepImportReport } from '../../../src/app/system/moving-in/report.ts'
import { findings, nodes, ownRadioDecisions, suspicions } from '../../../src/db/schema.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { oidcEnv, startProvider } from '../oidc/provider.ts'
import { freePort } from '../servers/free-port.ts'
import { openBrowser, openSite, type Site, type SiteBrowser, type Visitor } from './site.ts'

const ADMIN_PASSWORD = 'three radios on one hill'
const PASSWORD = 'a bench under the oak'

/** Four nodes in one place, one of which announced another key, and one whose firmware is known to be broken. */
const OWN_NODES = [1, 2, 3, 4].map((index) => ({
  nodeNum: 0x30000000 + index,
  longName: `Crowd ${index}`,
  firstHeard: Date.now(),
  lastHeard: Date.now(),
  latitude: 46,
  longitude: 8,
  ...(index === 1 && { keyMismatch: true, publicKey: 'A'.repeat(43), refusedPublicKey: 'B'.repeat(43) }),
  ...(index === 4 && { firmwareVersion: '2.5.0' }),
}))

const BROKEN = 0x30000004

const DISPUTED = {
  nodeNum: 0x30000009,
  longName: 'Disputed',
  firstHeard: Date.now(),
  lastHeard: Date.now(),
  spoofSuspected: true,
  refusedLongName: 'Somebody else',
}

/** Why it is disputed: without a reason the mark would end within minutes. */
const DOUBT = {
  nodeNum: DISPUTED.nodeNum,
  sourceId: 1,
  gateway: 0x30000001,
  reason: 'name',
  claim: 'name',
  count: 1,
  firstAt: Date.now(),
  lastAt: Date.now(),
} as const

const LOST = {
  token: null,
  permissions: null,
  scope: null,
  publicAccess: null,
  hiddenNode: null,
  what: null,
  undone: null,
  password: null,
  at: null,
}
const RESTORED = [
  { ...LOST, backup: '2026-01-15_120000', action: 'user_deleted', userId: 2, username: 'anna', by: 'karl' },
] as const

/** What an import from another program said. */
const IMPORTED: ImportReport = {
  file: 'meshmonitor.db',
  program: 'meshmonitor',
  migration: 1,
  isDryRun: false,
  startedAt: Date.now(),
  finishedAt: Date.now(),
  counts: [{ what: 'users', found: 2, added: 1 }],
  losses: [{ what: 'sources_empty', n: 1, names: ['Attic'] }],
  users: [{ username: 'berta', outcome: 'present', before: [], after: [] }],
  auditFile: null,
}

/** A site, and what a test closes after it. */
export type FilledSite = {
  readonly site: Site
  readonly browser: SiteBrowser
  /** The administrator, who has an account at the provider too, on the account page. */
  readonly admin: Visitor
  close(): Promise<void>
}

/** A site with all that dialogs are opened for, but what changes other pages. */
export async function openFilledSite(): Promise<FilledSite> {
  const provider = await startProvider()
  const port = await freePort()
  // Passkeys belong to a host name, not to an address.
  const base = `http://localhost:${port}`
  const env = oidcEnv(provider, { OIDC_REDIRECT_URI: `${base}/api/auth/oidc/callback` })
  const site = await openSite({ ...env, ADMIN_PASSWORD, PORT: String(port) }, async (store) => {
    const { db } = store
    await keepImportReport(store, IMPORTED)
    await db.insert(nodes).values([...OWN_NODES, DISPUTED])
    // As the first look finds it, a minute later.
    const found = { subject: String(BROKEN), nodes: JSON.stringify([BROKEN]), channels: '[]', since: Date.now() }
    await db.insert(findings).values({ rule: 'firmware', ...found, isLikely: true, evidence: '{"version":"2.5.0"}' })
    await db.insert(suspicions).values(DOUBT)
    await db.insert(ownRadioDecisions).values({ nodeNum: DISPUTED.nodeNum, isOwn: false, decidedAt: Date.now() })
  })
  const browser = await openBrowser(base)
  const admin = await browser.visit()
  await admin.goto('/account')
  await admin.signIn('admin', ADMIN_PASSWORD)
  await admin.page.getByRole('button', { name: 'Link with your organisation' }).click()
  await admin.page.getByText('Account linked').waitFor()
  // The provider is another host.
  admin.complaints.length = 0
  const { request } = admin.page
  const post = async (path: string, data: object, by = request) => {
    const made = await by.post(`${base}/api/${path}`, { headers: { origin: base }, data })
    expect([path, made.status()]).toEqual([path, 201])
  }
  await post('users', { username: 'anna', password: PASSWORD })
  await post('users/prepared', { username: 'guest' })
  const action = { kind: 'text', text: 'Net tonight' }
  await post('automation', { kind: 'schedule', name: 'Net', cron: '0 8 * * *', action })
  const rule = { kind: 'node_silent', nodes: { kind: 'list', nodes: [0x30000001] }, afterMinutes: 60, destinations: [] }
  await post('alerts/rules', { ...rule, name: 'Silent' })
  const chart = { title: 'Power', metrics: ['deviceMetrics.voltage'], nodes: [0x30000001, 0x30000002] }
  await post('boards', { name: 'Crowd', sharing: 'everybody', charts: [chart] })
  const anna = await browser.visit()
  await anna.goto('/')
  await anna.signIn('anna', PASSWORD)
  await anna.page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor()
  await post('alerts/rules', { ...rule, name: 'Of anna' }, anna.page.request)
  await anna.page.context().close()
  const close = async () => {
    await browser.close()
    await site.close()
    await provider.close()
  }
  return { site, browser, admin, close }
}

/** What `LAST_DIALOGS` are opened for. */
export async function spoil(site: Site): Promise<void> {
  const store = openDatabase(join(site.data, 'mesh.db'))
  await store.atomic(storeRestoredAccess(store, RESTORED, 1))
  const context = { store, ip: null, requestId: null, viewer: null, now: () => 1_768_478_400_000 }
  await store.atomic([audit(context, 'audit_damaged', { damage: 'entry 7 is changed' }, { actor: SYSTEM })])
  // As if everybody had signed in a quarter of an hour earlier.
  store.sqlite.prepare('update sessions set authenticated_at = authenticated_at - 900000').run()
  store.close()
}
