import type { Mail, Outbound } from './outgoing/ports.ts'
import type { Syslog } from '../audit/anchor/syslog-port.ts'
import type { StoredSession, SessionStore } from '../accounts/sessions/store.ts'
import type { Buckets } from '../http/limits/buckets.ts'
import type { PasswordHasher } from '../accounts/passwords/hasher.ts'
import type { Provider } from '../accounts/oidc/provider.ts'
import type { Connecting } from '../connections/port.ts'
import type { Radio } from '../mesh/radios/radio.ts'
import type { Events } from '../mesh/live/event.ts'
import type { Instances } from '../system/status/instances.ts'
import type { Meter } from '../system/metrics/meter.ts'
import type { Backups, Restores } from '../system/backup/backup.ts'
import type { Copies } from '../system/copies/port.ts'
import type { ClockWatch } from './pacing/clock.ts'
import type { Disk } from './pacing/disk.ts'
import type { MapArchive } from '../mesh/map/archive.ts'
import type { MapRegions } from '../mesh/map/region/port.ts'
import type { User } from '../accounts/users/user.ts'
import type { Context } from 'hono'
import type { Store } from '../../db/store.ts'
import type { Config } from '../config/config.ts'
import type { Log } from './log.ts'
import type { Compressor } from '../http/compression.ts'
import type { Permissions } from '../../shared/access/resources.ts'
import type { Scope } from '../../shared/access/scope.ts'
import type { PublicView } from '../accounts/access/public-view.ts'
import type { View } from '../accounts/access/visible.ts'
import type { Language } from '../../shared/languages.ts'
import type { UnitSystem } from '../../shared/mesh/unit-systems.ts'
import type { ReadTranslation } from '../words/words.ts'

/** What a process does, in this order. */
export const PHASES = ['starting', 'serving', 'stopping'] as const

/** The outside world, implemented once for each runtime. A port that is null means "this runtime cannot": 501. */
export interface Ports {
  readonly config: Config
  readonly store: Store
  readonly sessions: SessionStore
  readonly buckets: Buckets
  readonly passwords: PasswordHasher
  readonly log: Log
  /** The OpenID providers, the default one first. */
  readonly providers: readonly Provider[]
  readonly backups: Backups | null
  readonly restores: Restores | null
  /** Null: a runtime without backups. */
  readonly copies: Copies | null
  readonly radio: Radio | null
  /** Null: a runtime that connects to no radio. */
  readonly connecting: Connecting | null
  readonly events: Events | null
  readonly meter: Meter | null
  /** Null: a proxy in front of the service compresses its answers, or nothing does. */
  readonly compressor: Compressor | null
  /** Sends alerts to addresses that users typed. */
  readonly outbound: Outbound | null
  /** Null: no SMTP_URL, or a runtime without e-mail. */
  readonly mail: Mail | null
  /** Null: a runtime without sockets. */
  readonly syslog: Syslog | null
  /** The file of MAP_PMTILES, if the runtime has a disk. */
  readonly mapArchive: MapArchive | null
  /** The map of a region in the data directory, if the runtime has a disk. */
  readonly mapRegions: MapRegions | null
  /** Whether the clock of this machine is trusted; null: it always is. */
  readonly clockWatch: ClockWatch | null
  /** The processes on the same data directory; null: there is one, or the platform knows. */
  readonly instances: Instances | null
  /** The version of the service, from package.json. */
  readonly version: string
  /** The disk of the database; null: it never fills up, or that is unknown. */
  readonly disk: Disk | null
  /** The texts of the languages other than English. */
  readonly translations: ReadTranslation
  /** What this process does now. */
  phase(): (typeof PHASES)[number]
  /** When the process began to serve. */
  readonly startedAt: number
  /** Milliseconds since the Unix epoch. */
  now(): number
  /** Address of the client behind trusted proxies; null if there is none (a test, a Unix socket). */
  clientIp(c: Context): string | null
  /** The user that a trusted authenticating proxy names; null: nobody, or a proxy that is not trusted. */
  proxyUser(c: Context): string | null
  /** Scheme, host and port by which the client addressed the service, e.g. `https://mesh.example.org`. */
  origin(c: Context): string
}

/** A runtime without any of the optional ports. */
export const NO_PORTS = {
  providers: [],
  backups: null,
  restores: null,
  copies: null,
  radio: null,
  connecting: null,
  events: null,
  meter: null,
  compressor: null,
  outbound: null,
  mail: null,
  syslog: null,
  mapArchive: null,
  mapRegions: null,
  clockWatch: null,
  disk: null,
  instances: null,
  phase: () => 'serving',
} as const satisfies Partial<Ports>

/** One request. */
export interface Ctx extends Ports {
  /** The user that the authenticating proxy names. */
  readonly namedByProxy?: string | null
  /** The header that names the caller's browser. */
  readonly userAgent?: string | undefined
  /** The languages that the caller's browser or program wants (RFC 9110, 12.5.4). */
  readonly acceptLanguage?: string | undefined
  readonly viewer: Viewer | null
  /** The request has an API token that is held; `viewer` is null then. */
  readonly isTokenHeld?: true
  /** Revision of the nodes, if it was read together with the viewer. */
  readonly nodesRevision?: number
  /** The result of `countToReview`, if it was read together with the viewer. */
  readonly toReview?: number
  /** The stored name of the mesh, if it was read together with the viewer. */
  readonly meshName?: string | null
  /** The answer is a page that these sites may show in a frame. */
  readonly embedIn?: readonly string[]
  /** Security headers of this answer, instead of the usual ones of the same names. */
  readonly ownHeaders?: Readonly<Record<string, string>>
  /** An administrator previews public access with settings that are not in force; `viewer` is null then. */
  readonly preview?: PublicView
  readonly ip: string | null
  readonly requestId: string
}

export type AppEnv = { Variables: { ctx: Ctx } }

/** A request that passed an access rule. */
export type SignedInCtx = Ctx & { readonly viewer: Viewer }
export type SignedIn = { Variables: { ctx: SignedInCtx } }

/** The caller, with current permissions. */
export type Viewer = {
  readonly user: User
  /** What this request may do: a token's scopes are already applied. */
  readonly permissions: Permissions
  /** The contents that the owner sees. It limits the permissions. */
  readonly scope: Scope
  /** The contents that this request sees. */
  readonly view: View
  readonly mustChangePassword: boolean
  readonly secondFactor: {
    readonly isSetUp: boolean
    /** When an administrator removed the user's second factors; null once the user has confirmed the notice. */
    readonly resetAt: number | null
  }
  /** The language that the user chose; null: that of the browser. */
  readonly language: Language | null
  /** The units that the user chose; null: metric. */
  readonly units: UnitSystem | null
  readonly credential:
    | {
        readonly kind: 'session'
        readonly session: StoredSession
        /** An administrator sees with the permissions of `user`; the session is the administrator's. */
        readonly isSeenAs?: true
      }
    | {
        readonly kind: 'token'
        readonly tokenId: number
        /** Without those that need more permissions than the owner has now. */
        readonly scopes: readonly string[]
        /** What the owner may do. */
        readonly held: Permissions
      }
}

/** What reading the contents of the mesh on somebody's behalf needs. */
export type Reader = Pick<Ports, 'store'> & { readonly viewer: Pick<Viewer, 'permissions' | 'view'> }
