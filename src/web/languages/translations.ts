import type { areaKind } from '../pages/alerts/kinds/area.tsx'
import type { backupKind } from '../pages/alerts/kinds/backup.tsx'
import type { watchedTexts } from '../pages/alerts/kinds/fields.tsx'
import type { findingKind } from '../pages/alerts/kinds/finding.tsx'
import type { keyKind } from '../pages/alerts/kinds/key.ts'
import type { linkKind } from '../pages/alerts/kinds/link.tsx'
import type { messageKind } from '../pages/alerts/kinds/message.tsx'
import type { metricKind } from '../pages/alerts/kinds/metric.tsx'
import type { nodeNewKind } from '../pages/alerts/kinds/node-new.ts'
import type { nodeRestartedKind } from '../pages/alerts/kinds/node-restarted.ts'
import type { nodeSilentKind } from '../pages/alerts/kinds/node-silent.tsx'
import type { retentionKind } from '../pages/alerts/kinds/retention.ts'
import type { signInKind } from '../pages/alerts/kinds/sign-in.ts'
import type { acknowledgeKind } from '../pages/automation/kinds/acknowledge.tsx'
import type { announceKind } from '../pages/automation/kinds/announce.tsx'
import type { scheduleKind } from '../pages/automation/kinds/schedule.tsx'
import type { tracerouteKind } from '../pages/automation/kinds/traceroute.tsx'
import type { connectTexts } from '../parts/connect-help.tsx'
import type { alertTexts, DESTINATION_TEXTS, FIELD_TEXTS } from '../strings/alerts.ts'
import type { a } from '../strings/automation.ts'
import type { common } from '../strings/common.ts'
import type { errors } from '../strings/errors.ts'
import type { installTexts } from '../strings/install.ts'
import type { backgroundTexts } from '../strings/mesh/background.ts'
import type { boardTexts } from '../strings/mesh/boards.ts'
import type { chartTexts } from '../strings/mesh/charts.ts'
import type { compareTexts } from '../strings/mesh/compare.ts'
import type { dashboard } from '../strings/mesh/dashboard.ts'
import type { frameTexts } from '../strings/mesh/frames.ts'
import type { identityTexts } from '../strings/mesh/identity.ts'
import type { directTexts } from '../strings/mesh/direct-range.ts'
import type { map } from '../strings/mesh/map.ts'
import type { coverageTexts } from '../strings/mesh/coverage.ts'
import type { topologyTexts } from '../strings/mesh/topology.ts'
import type { rulerTexts } from '../strings/mesh/map-ruler.ts'
import type { horizonTexts } from '../strings/mesh/horizon.ts'
import type { overlayTexts } from '../strings/mesh/overlays.ts'
import type { colourTexts } from '../strings/mesh/map-colours.ts'
import type { measurementTexts, measurementGroups } from '../strings/mesh/measurements.ts'
import type { messages } from '../strings/mesh/messages.ts'
import type { keyTexts } from '../strings/mesh/keys.ts'
import type { needTexts } from '../strings/mesh/needs.ts'
import type { neighbors } from '../strings/mesh/neighbors.ts'
import type { nodeTexts } from '../strings/mesh/node.ts'
import type { nodes } from '../strings/mesh/nodes.ts'
import type { packetFields, packetTexts, packetOrigins } from '../strings/mesh/packets.ts'
import type { findingTexts } from '../strings/mesh/findings.ts'
import type { pastTexts } from '../strings/mesh/past.ts'
import type { playbackTexts } from '../strings/mesh/playback.ts'
import type { rangeTexts } from '../strings/range.ts'
import type { requestTexts } from '../strings/mesh/requests.ts'
import type { routes } from '../strings/mesh/routes.ts'
import type { waypointTexts } from '../strings/mesh/waypoints.ts'
import type { accountTexts } from '../strings/people/account.ts'
import type { factorTexts } from '../strings/people/factors.ts'
import type { mailTexts } from '../strings/people/mail.ts'
import type { quietTexts } from '../strings/people/quiet-hours.ts'
import type { resources, actions, scopes } from '../strings/people/permissions.ts'
import type { embedTexts } from '../strings/people/embed.ts'
import type { publicTexts } from '../strings/people/public-access.ts'
import type { scopeTexts } from '../strings/people/scope.ts'
import type { signIn, password } from '../strings/people/sign-in.ts'
import type { userTexts } from '../strings/people/users.ts'
import type { shell, lost, nav, finder } from '../strings/shell.ts'
import type { auditDamageTexts } from '../strings/system/audit-damage.ts'
import type { auditTexts, AUDIT_NAMES, AUDIT_RESOURCES } from '../strings/system/audit.ts'
import type { backupTexts } from '../strings/system/backups.ts'
import type { copyTexts } from '../strings/system/copies.ts'
import type { movingInTexts } from '../strings/system/moving-in.ts'
import type { FIELDS, OPTIONS, SPELLINGS } from '../strings/system/configuration-fields.ts'
import type { c, SECTIONS } from '../strings/system/configuration.ts'
import type { appTexts } from '../strings/system/apps.ts'
import type { linkReasons, radioProblems } from '../strings/system/radio-problems.ts'
import type { CONNECTION_KINDS, connectionTexts } from '../strings/system/connections.ts'
import type { r } from '../strings/system/remote.ts'
import type { restoreTexts } from '../strings/system/restore.ts'
import type { restoredAccessTexts } from '../strings/system/restored-access.ts'
import type { settingsTexts } from '../strings/system/settings.ts'
import type { clockStates, jobNames, problemTexts, systemTexts, tableNames } from '../strings/system/system.ts'
import type { transfer } from '../strings/system/transfer.ts'
import type { unitTexts } from '../strings/units.ts'

/** What a translation holds: the same as the English texts, in another wording. */
export interface Translations {
  readonly areaKind: typeof areaKind
  readonly backupKind: typeof backupKind
  readonly watchedTexts: typeof watchedTexts
  readonly findingKind: typeof findingKind
  readonly keyKind: typeof keyKind
  readonly linkKind: typeof linkKind
  readonly messageKind: typeof messageKind
  readonly metricKind: typeof metricKind
  readonly nodeNewKind: typeof nodeNewKind
  readonly nodeRestartedKind: typeof nodeRestartedKind
  readonly nodeSilentKind: typeof nodeSilentKind
  readonly retentionKind: typeof retentionKind
  readonly signInKind: typeof signInKind
  readonly acknowledgeKind: typeof acknowledgeKind
  readonly announceKind: typeof announceKind
  readonly scheduleKind: typeof scheduleKind
  readonly tracerouteKind: typeof tracerouteKind
  readonly alertTexts: typeof alertTexts
  readonly DESTINATION_TEXTS: typeof DESTINATION_TEXTS
  readonly FIELD_TEXTS: typeof FIELD_TEXTS
  readonly a: typeof a
  readonly connectTexts: typeof connectTexts
  readonly common: typeof common
  readonly errors: typeof errors
  readonly dashboard: typeof dashboard
  readonly keyTexts: typeof keyTexts
  readonly needTexts: typeof needTexts
  readonly identityTexts: typeof identityTexts
  readonly frames: typeof frameTexts
  readonly mapColours: typeof colourTexts
  readonly directRange: typeof directTexts
  readonly boardTexts: typeof boardTexts
  readonly chartTexts: typeof chartTexts
  readonly findingTexts: typeof findingTexts
  readonly playbackTexts: typeof playbackTexts
  readonly rangeTexts: typeof rangeTexts
  readonly pastTexts: typeof pastTexts
  readonly requestTexts: typeof requestTexts
  readonly waypointTexts: typeof waypointTexts
  readonly coverage: typeof coverageTexts
  readonly topology: typeof topologyTexts
  readonly mapRuler: typeof rulerTexts
  readonly horizon: typeof horizonTexts
  readonly overlays: typeof overlayTexts
  readonly backgroundTexts: typeof backgroundTexts
  readonly map: typeof map
  readonly measurementTexts: typeof measurementTexts
  readonly measurementGroups: typeof measurementGroups
  readonly messages: typeof messages
  readonly neighbors: typeof neighbors
  readonly nodeTexts: typeof nodeTexts
  readonly nodes: typeof nodes
  readonly packetFields: typeof packetFields
  readonly packetTexts: typeof packetTexts
  readonly routes: typeof routes
  readonly accountTexts: typeof accountTexts
  readonly factorTexts: typeof factorTexts
  readonly mailTexts: typeof mailTexts
  readonly quietTexts: typeof quietTexts
  readonly resources: typeof resources
  readonly actions: typeof actions
  readonly scopes: typeof scopes
  readonly embedTexts: typeof embedTexts
  readonly publicTexts: typeof publicTexts
  readonly scopeTexts: typeof scopeTexts
  readonly signIn: typeof signIn
  readonly password: typeof password
  readonly userTexts: typeof userTexts
  readonly shell: typeof shell
  readonly lost: typeof lost
  readonly nav: typeof nav
  readonly finder: typeof finder
  readonly installTexts: typeof installTexts
  readonly compareTexts: typeof compareTexts
  readonly auditDamageTexts: typeof auditDamageTexts
  readonly auditTexts: typeof auditTexts
  readonly AUDIT_NAMES: typeof AUDIT_NAMES
  readonly AUDIT_RESOURCES: typeof AUDIT_RESOURCES
  readonly backupTexts: typeof backupTexts
  readonly copyTexts: typeof copyTexts
  readonly movingInTexts: typeof movingInTexts
  readonly FIELDS: typeof FIELDS
  readonly OPTIONS: typeof OPTIONS
  readonly SPELLINGS: typeof SPELLINGS
  readonly c: typeof c
  readonly remote: typeof r
  readonly SECTIONS: typeof SECTIONS
  readonly packetOrigins: typeof packetOrigins
  readonly appTexts: typeof appTexts
  readonly radioProblems: typeof radioProblems
  readonly linkReasons: typeof linkReasons
  readonly connectionTexts: typeof connectionTexts
  readonly CONNECTION_KINDS: typeof CONNECTION_KINDS
  readonly transfer: typeof transfer
  readonly restoreTexts: typeof restoreTexts
  readonly restoredAccessTexts: typeof restoredAccessTexts
  readonly settingsTexts: typeof settingsTexts
  readonly systemTexts: typeof systemTexts
  readonly tableNames: typeof tableNames
  readonly jobNames: typeof jobNames
  readonly clockStates: typeof clockStates
  readonly problemTexts: typeof problemTexts
  readonly unitTexts: typeof unitTexts
}
