import type { Rule } from '../../../src/app/http/describe.ts'
import type { Action, Resource } from '../../../src/shared/access/resources.ts'

const anyone: Rule = { kind: 'anyone' }
const session: Rule = { kind: 'signed-in', tokens: false, temporaryPassword: false }
const anySession: Rule = { kind: 'signed-in', tokens: false, temporaryPassword: true }
/** Also users who must set up a second factor first. */
const enrolling: Rule = { ...session, enrolling: true }
const admin: Rule = { kind: 'admin', scope: null }

/** Administrators, and bearer tokens with the scope. */
const adminOr = (scope: 'backup' | 'metrics'): Rule => ({ kind: 'admin', scope })

/** A permission on a resource. */
const may = (resource: Resource, action: Action): Rule => ({ kind: 'permission', resource, action })

/** Bearer tokens with the scope, but never a session. */
const tokenFor = (scope: 'ingest'): Rule => ({ kind: 'token', scope })

/** The access rule of each route, repeated by hand: changing a route's rule means changing it here too. */
export const RULES: Readonly<Record<string, Rule>> = {
  'GET /api/health': anyone,
  'GET /api/openapi.json': anyone,
  'GET /api/docs': anyone,
  'GET /api/docs/style.css': anyone,

  'GET /api/auth/status': anyone,
  'POST /api/auth/login': anyone,
  'POST /api/auth/login/totp': anyone,
  'POST /api/auth/login/recovery': anyone,
  'POST /api/auth/login/passkey/options': anyone,
  'POST /api/auth/login/passkey': anyone,
  'POST /api/auth/logout': anyone,
  'POST /api/auth/change-password': anySession,
  'GET /api/auth/reauthenticate': enrolling,
  'POST /api/auth/reauthenticate': enrolling,
  'POST /api/auth/reauthenticate/options': enrolling,
  'GET /api/auth/oidc/login': anyone,
  'GET /api/auth/oidc/callback': anyone,
  'GET /api/auth/proxy/login': anyone,
  'POST /api/auth/oidc/backchannel-logout': anyone,
  'GET /api/auth/oidc/link': session,
  'POST /api/auth/oidc/link': session,
  'DELETE /api/auth/oidc/link': session,
  'GET /api/auth/sessions': session,
  'DELETE /api/auth/sessions': session,
  'DELETE /api/auth/sessions/:id': session,

  'GET /api/auth/factors': enrolling,
  'POST /api/auth/factors/totp': enrolling,
  'POST /api/auth/factors/totp/confirm': enrolling,
  'DELETE /api/auth/factors/totp': enrolling,
  'POST /api/auth/factors/passkeys/options': enrolling,
  'POST /api/auth/factors/passkeys': enrolling,
  'DELETE /api/auth/factors/passkeys/:id': enrolling,
  'POST /api/auth/factors/recovery-codes': enrolling,
  'DELETE /api/auth/factors/reset-notice': enrolling,

  'GET /api/tokens': session,
  'POST /api/tokens': session,
  'DELETE /api/tokens/:id': session,

  'GET /api/users': admin,
  'POST /api/users': admin,
  'POST /api/users/prepared': admin,
  'GET /api/users/:id/invitation': admin,
  'POST /api/users/:id/invitation': admin,
  'DELETE /api/users/:id/invitation': admin,
  'DELETE /api/users/:id/link': admin,
  'GET /api/users/:id/provider-role': admin,
  'GET /api/users/:id': admin,
  'PUT /api/users/:id': admin,
  'DELETE /api/users/:id': admin,
  'PUT /api/users/:id/admin': admin,
  'POST /api/users/:id/reset-password': admin,
  'POST /api/users/:id/reset-second-factor': admin,
  'GET /api/users/:id/permissions': admin,
  'PUT /api/users/:id/permissions': admin,
  'POST /api/users/:id/see-as': admin,
  'GET /api/users/:id/sessions': admin,
  'DELETE /api/users/:id/sessions': admin,
  'DELETE /api/users/:id/sessions/:sessionId': admin,
  'GET /api/users/:id/tokens': admin,
  'DELETE /api/users/:id/tokens': admin,
  'DELETE /api/users/:id/tokens/:tokenId': admin,

  'GET /api/audit': admin,
  'GET /api/audit/export': admin,
  'GET /api/audit/verify': admin,

  'POST /api/system/backup': adminOr('backup'),
  'GET /api/system/backup': adminOr('backup'),
  'GET /api/system/backup/settings': admin,
  'PUT /api/system/backup/settings': admin,
  'GET /api/system/backup/download/:name': adminOr('backup'),
  'POST /api/system/backup/:name/verify': adminOr('backup'),
  'DELETE /api/system/backup/:name': admin,

  'GET /api/system/restore/revived': admin,
  'DELETE /api/system/restore/revived': admin,
  'POST /api/system/restore/reapply': admin,

  'GET /api/map': may('nodes', 'read'),
  'GET /api/map/archive': may('nodes', 'read'),
  'GET /api/map/preview': may('settings', 'write'),
  'GET /api/nodes': may('nodes', 'read'),
  'GET /api/nodes/:id': may('nodes', 'read'),
  'PUT /api/nodes/:id': may('nodes', 'write'),
  'DELETE /api/nodes/:id': may('nodes', 'write'),
  'PUT /api/nodes/:id/key': may('nodes', 'write'),
  'GET /api/nodes/:id/positions': may('nodes', 'read'),
  'POST /api/ingest': tokenFor('ingest'),
  'GET /api/messages': may('messages', 'read'),
  'POST /api/messages': may('messages', 'write'),
  'GET /api/messages/:id/receptions': may('messages', 'read'),
  'GET /api/info': may('info', 'read'),
  'GET /api/traceroutes': may('info', 'read'),
  'POST /api/traceroutes': may('info', 'write'),
  'GET /api/neighbors': may('info', 'read'),
  'GET /api/packets': may('info', 'read'),
  'GET /api/waypoints': may('nodes', 'read'),
  'GET /api/channels': may('messages', 'read'),
  'GET /api/telemetry': may('info', 'read'),
  'GET /api/events': { ...session, tokens: true },
  'GET /api/metrics': adminOr('metrics'),
  'GET /api/dashboard': may('dashboard', 'read'),
  'GET /api/automation': may('automation', 'read'),
  'POST /api/automation': may('automation', 'write'),
  'POST /api/automation/dry-run': may('automation', 'write'),
  'GET /api/automation/:id': may('automation', 'read'),
  'PUT /api/automation/:id': may('automation', 'write'),
  'DELETE /api/automation/:id': may('automation', 'write'),
  'GET /api/automation/:id/runs': may('automation', 'read'),
  'POST /api/automation/:id/dry-run': may('automation', 'read'),

  'GET /api/alerts': session,
  'POST /api/alerts/:id/acknowledge': session,
  'GET /api/alerts/rules': session,
  'POST /api/alerts/rules': session,
  'POST /api/alerts/rules/preview': session,
  'GET /api/alerts/rules/:id': session,
  'PUT /api/alerts/rules/:id': session,
  'DELETE /api/alerts/rules/:id': session,
  'GET /api/alerts/destinations': session,
  'POST /api/alerts/destinations': session,
  'PUT /api/alerts/destinations/:id': session,
  'DELETE /api/alerts/destinations/:id': session,
  'POST /api/alerts/destinations/:id/test': session,
  'POST /api/alerts/destinations/:id/confirm': session,
  'GET /api/alerts/push-key': session,
  'GET /api/alerts/deliveries': session,

  'GET /api/public-access': admin,
  'PUT /api/public-access': admin,
  'POST /api/public-access/preview': admin,

  'GET /api/settings': may('settings', 'read'),
  'PUT /api/settings': may('settings', 'write'),
  'GET /api/configuration': may('configuration', 'read'),
  'GET /api/configuration/:section': may('configuration', 'read'),
  'PUT /api/configuration/:section': may('configuration', 'write'),
}

/**
 * What the answer of each route may contain, except routes for administrators only. `view`: data of the mesh, limited
 * to what `src/app/sharing/visible.ts` lets the viewer see. `own`: data of the caller. `none`: neither.
 */
export const CONTENTS: Readonly<Record<string, 'view' | 'own' | 'none'>> = {
  'GET /api/auth/reauthenticate': 'own',
  'GET /api/auth/sessions': 'own',
  'GET /api/auth/factors': 'own',
  'GET /api/tokens': 'own',
  'GET /api/map': 'none',
  'GET /api/map/archive': 'none',
  'GET /api/map/preview': 'none',
  'GET /api/nodes': 'view',
  'GET /api/nodes/:id': 'view',
  'GET /api/nodes/:id/positions': 'view',
  'GET /api/messages': 'view',
  'GET /api/messages/:id/receptions': 'view',
  'GET /api/info': 'view',
  'GET /api/traceroutes': 'view',
  'GET /api/neighbors': 'view',
  'GET /api/packets': 'view',
  'GET /api/waypoints': 'view',
  'GET /api/channels': 'view',
  'GET /api/telemetry': 'view',
  'GET /api/events': 'view',
  'GET /api/dashboard': 'view',
  'GET /api/auth/oidc/link': 'own',
  'GET /api/settings': 'none',
  'GET /api/automation': 'none',
  'GET /api/automation/:id': 'none',
  'GET /api/automation/:id/runs': 'view',
  'GET /api/alerts': 'own',
  'GET /api/alerts/rules': 'own',
  'GET /api/alerts/rules/:id': 'own',
  'GET /api/alerts/destinations': 'own',
  'GET /api/alerts/push-key': 'none',
  'GET /api/alerts/deliveries': 'own',
  'GET /api/configuration': 'none',
  'GET /api/configuration/:section': 'none',
}
