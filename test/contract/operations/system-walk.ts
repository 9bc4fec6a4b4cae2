import { item } from '../../support/mesh/delivery.ts'
import { packet, text } from '../../support/mesh/mesh.ts'
import { rememberSettings } from '../scenarios/configuration-scenarios.ts'
import type { Walker } from './walker.ts'

/** The service itself: its log, rules, backups, radios and what strangers see. `folder`: where copies may lie. */
export async function walkSystem(walker: Walker, folder: string): Promise<void> {
  const { call } = walker
  for (const part of ['health', 'ready', 'live', 'openapi.json', 'docs', 'docs/style.css', 'system', 'system/import']) {
    await call(`GET /api/${part}`)
  }
  await call('GET /api/audit', { query: '?limit=5' })
  await call('GET /api/audit/export', { query: '?format=csv' })
  await call('GET /api/audit/verify')
  await call('GET /api/audit/damage')
  await call('POST /api/audit/damage/confirm', { body: { id: 1 } })
  await walkRules(walker)
  await walkAlerts(walker)
  await walkSharing(walker)
  await walkRadios(walker)
  await walkRemote(walker)
  await walkBackups(walker)
  await walkCopies(walker, folder)
}

async function walkRules({ call }: Walker): Promise<void> {
  const when = { kind: 'cron', cron: '30 8 * * 1-5' }
  const rule = { kind: 'announce', name: 'Morning', when, channels: [0], text: 'Good morning' }
  const { automation } = await call('POST /api/automation', { body: rule })
  const ids = [Object(automation).id]
  await call('GET /api/automation')
  await call('GET /api/automation/:id', { ids })
  await call('PUT /api/automation/:id', { ids, body: { ...rule, name: 'Noon' } })
  await call('GET /api/automation/:id/runs', { ids })
  await call('POST /api/automation/:id/dry-run', { ids })
  await call('POST /api/automation/dry-run', { body: { rule } })
  await call('DELETE /api/automation/:id', { ids })
}

async function walkAlerts(walker: Walker): Promise<void> {
  const { call } = walker
  const hook = { kind: 'webhook', name: 'Hook', settings: { url: 'https://127.0.0.1:9/' } }
  const { destination } = await call('POST /api/alerts/destinations', { body: hook })
  const at = [Object(destination).id]
  const rule = { kind: 'node_silent', name: 'Silent', nodes: { kind: 'all' }, afterMinutes: 15, destinations: at }
  const { rule: made } = await call('POST /api/alerts/rules', { body: rule })
  const ids = [Object(made).id]
  await call('POST /api/alerts/rules/preview', { body: rule })
  await deliverHelp(walker)
  const { alerts } = await call('GET /api/alerts')
  await call('POST /api/alerts/:id/acknowledge', { ids: [Object(alerts)[0].id] })
  await call('GET /api/alerts/rules')
  await call('GET /api/alerts/rules/:id', { ids })
  await call('PUT /api/alerts/rules/:id', { ids, body: { ...rule, name: 'Gone' } })
  for (const part of ['/watched', '/destinations', '/quiet-hours', '/push-key', '/deliveries']) {
    await call(`GET /api/alerts${part}`)
  }
  await call('PUT /api/alerts/quiet-hours', { body: { quietHours: null } })
  await call('PUT /api/alerts/destinations/:id', { ids: at, body: { name: 'Other' } })
  await call('POST /api/alerts/destinations/:id/release', { ids: at })
  await call('POST /api/alerts/destinations/:id/test', { ids: at })
  await call('POST /api/alerts/destinations/:id/confirm', { ids: at, body: { token: 'a'.repeat(64) } })
  await call('DELETE /api/alerts/rules/:id', { ids })
  await call('DELETE /api/alerts/destinations/:id', { ids: at })
}

/** Somebody says a watched word. */
async function deliverHelp({ call, stranger }: Walker): Promise<void> {
  const help = { kind: 'message', name: 'Help', match: { words: ['help'] } }
  await call('POST /api/alerts/rules', { body: help })
  const { token } = await call('POST /api/tokens', { body: { name: 'valley', scopes: ['ingest'] } })
  const headers = { authorization: `Bearer ${String(token)}` }
  const body = { source: 'valley', packets: [item(packet(text('help me')))] }
  await call('POST /api/ingest', { by: stranger(), headers, body })
}

async function walkSharing(walker: Walker): Promise<void> {
  const { call } = walker
  const shown = await call('GET /api/public-access')
  const body = Object(shown['access'] ?? shown)
  await call('POST /api/public-access/preview', { body })
  await call('PUT /api/public-access', { body: { enabled: true } })
  await walker.listenAsVisitor()
  const frame = {
    center: null,
    zoom: null,
    layers: ['labels'],
    name: 'Club',
    origins: ['https://club.example'],
    width: 400,
    height: 300,
  }
  const { id } = await call('POST /api/public-access/frames', { body: frame })
  const ids = [String(id)]
  await call('GET /api/public-access/frames')
  await call('PUT /api/public-access/frames/:id', { ids, body: { ...frame, name: 'Association' } })
  await call('DELETE /api/public-access/frames/:id', { ids })
}

async function walkRadios({ call, admin }: Walker): Promise<void> {
  await rememberSettings(admin)
  await call('GET /api/configuration')
  await call('GET /api/configuration/:section', { ids: ['lora'] })
  await call('PUT /api/configuration/:section', { ids: ['lora'], body: { values: { hopLimit: 4 } } })
  const transfer = '/api/configuration/transfer'
  const url = 'https://meshtastic.org/e/#CgMSAQESCAgBOAFAA0gB'
  await call(`POST ${transfer}/channels/share`, { body: { channels: [0] } })
  await call(`POST ${transfer}/channels/preview`, { body: { url } })
  await call(`PUT ${transfer}/channels`, { body: { url } })
  await call(`GET ${transfer}/file`)
  await call(`POST ${transfer}/file/export`, { body: {} })
  await call(`POST ${transfer}/file/preview`, { body: { yaml: 'owner: Hill' } })
  await call(`PUT ${transfer}/file`, { body: { yaml: 'owner: Hill', sections: ['owner'] } })
  const settings = { host: '127.0.0.1', port: 9 }
  await call('GET /api/connections')
  await call('POST /api/connections/test', { body: { kind: 'tcp', settings } })
  const { connection } = await call('POST /api/connections', {
    body: { kind: 'tcp', name: 'Roof', enabled: false, settings },
  })
  const ids = [Object(connection).id ?? 1]
  await call('PUT /api/connections/:id', { ids, body: { enabled: false } })
  await call('DELETE /api/connections/:id', { ids })
  await call('GET /api/connections/candidates')
}

async function walkRemote({ call }: Walker): Promise<void> {
  const ids = [0xa0cb0002]
  await call('GET /api/remote')
  await call('GET /api/remote/:id', { ids })
  await call('PUT /api/remote/:id', { ids, body: { own: true } })
  await call('POST /api/remote/:id', { ids, body: { action: 'read', section: 'lora' } })
  await call('GET /api/remote/:id/:section', { ids: [...ids, 'lora'] })
  await call('PUT /api/remote/:id/:section', { ids: [...ids, 'lora'], body: { values: { hopLimit: 4 } } })
}

async function walkBackups({ call }: Walker): Promise<void> {
  const { backup } = await call('POST /api/system/backup')
  const ids = [Object(backup).name]
  await call('GET /api/system/backup')
  await call('GET /api/system/backup/settings')
  await call('PUT /api/system/backup/settings', { body: { enabled: true, maxBackups: 3, backupTime: '03:00' } })
  await call('POST /api/system/backup/:name/verify', { ids })
  await call('GET /api/system/backup/download/:name', { ids })
  await call('GET /api/system/backup/:name/restore', { ids })
  await call('POST /api/system/backup/:name/restore', { ids })
  await call('GET /api/system/restore')
  await call('DELETE /api/system/restore')
  await call('DELETE /api/system/restore/outcome')
  await call('GET /api/system/restore/restored-access')
  await call('DELETE /api/system/restore/restored-access')
  await call('POST /api/system/restore/reapply', { body: { ids: [1] } })
  await call('DELETE /api/system/backup/:name', { ids })
}

async function walkCopies({ call }: Walker, folder: string): Promise<void> {
  const place = { kind: 'folder', settings: { path: folder } }
  const recipient = 'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p'
  await call('GET /api/system/copies')
  await call('PUT /api/system/copies', { body: { recipients: [{ recipient, name: 'Safe' }] } })
  await call('POST /api/system/copies/test', { body: place })
  const { place: made } = await call('POST /api/system/copies', { body: { ...place, name: 'Attic' } })
  const ids = [Object(made).id ?? 1]
  await call('PUT /api/system/copies/:id', { ids, body: { enabled: false } })
  await call('POST /api/system/copies/drill')
  await call('DELETE /api/system/copies/:id', { ids })
}
