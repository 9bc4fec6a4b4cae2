import type { Context } from 'hono'
import type { JsonObject } from '@bufbuild/protobuf'
import type { Store } from '../db/store.ts'
import type { SectionInput } from '../meshtastic/config/change.ts'
import type { SectionKind } from '../meshtastic/config/sections.ts'
import type { SectionView } from '../meshtastic/config/values.ts'
import type { LoraSettings } from '../meshtastic/airtime.ts'
import type { BatchCounts } from './mesh/ingest/ingest.ts'
import type { RuleKind as AutomationKind, RunEnd } from '../shared/rule-kinds.ts'
import type { Profile } from './auth/oidc/profile.ts'
import type { Config } from './config/config.ts'
import type { Log } from './log.ts'
import type { Compressor } from './http/compression.ts'
import type { ByteRange } from './mesh/map/byte-range.ts'
import type { Hearing } from './mesh/radios/choose-radio.ts'
import type { LiveEvent, NewEvent } from './mesh/live/events.ts'
import type { PmtilesHeader } from './mesh/map/pmtiles-header.ts'
import type { BackupSchedule } from './system/backup-settings.ts'
import type { Family } from './system/exposition.ts'
import type { Backup, BackupKind, BackupProgress, Verification } from './system/backups.ts'
import type { Permissions } from '../shared/resources.ts'
import type { User } from './users/users.ts'
import type { LinkKind, OwnKind } from '../shared/link-kinds.ts'

/** The outside world, implemented once for each runtime. A port that is null means "this runtime cannot": 501. */
export interface Ports {
  readonly config: Config
  readonly store: Store
  readonly sessions: SessionStore
  readonly buckets: Buckets
  readonly passwords: PasswordHasher
  readonly log: Log
  readonly oidc: Oidc | null
  readonly backups: Backups | null
  readonly radio: Radio | null
  readonly events: Events | null
  readonly meter: Meter | null
  /** Null: whoever stands before the service compresses its answers, or nobody. */
  readonly compressor: Compressor | null
  /** The file of MAP_PMTILES, where there is a disk to keep it on. */
  readonly mapArchive: MapArchive | null
  /** Whether the clock of this machine is believed; null: it always is. */
  readonly clockWatch: ClockWatch | null
  /** Of the service, as package.json has it. */
  readonly version: string
  /** Where the database is kept; null: it never fills up, or nobody can tell. */
  readonly disk: Disk | null
  /** When the process began to serve. */
  readonly startedAt: number
  /** Milliseconds since the Unix epoch. */
  now(): number
  /** Address of the client behind trusted proxies, or null when there is none (a test, a Unix socket). */
  clientIp(c: Context): string | null
  /** Scheme, host and port by which the client addressed the service, e.g. `https://mesh.example.org`. */
  origin(c: Context): string
}

/** One request. */
export interface Ctx extends Ports {
  readonly viewer: Viewer | null
  readonly ip: string | null
  readonly requestId: string
}

export type AppEnv = { Variables: { ctx: Ctx; hasHeaders?: boolean } }

/** A request that passed an access rule. */
export type SignedInCtx = Ctx & { readonly viewer: Viewer }
export type SignedIn = { Variables: { ctx: SignedInCtx; hasHeaders?: boolean } }

/** Who is asking, read fresh on each request. */
export type Viewer = {
  readonly user: User
  /** What this request may do: a token's scopes are already taken off. */
  readonly permissions: Permissions
  readonly mustChangePassword: boolean
  readonly secondFactor: {
    readonly isSetUp: boolean
    /** When an administrator took the second factors away; null once the user has read it. */
    readonly resetAt: number | null
  }
  readonly credential:
    | { readonly kind: 'session'; readonly session: StoredSession }
    | {
        readonly kind: 'token'
        readonly tokenId: number
        /** Without those for which the owner does not hold enough now. */
        readonly scopes: readonly string[]
        /** What the owner may do. */
        readonly held: Permissions
      }
}

export type StoredSession = {
  /** Public number of the session, unique in the store. */
  readonly id: number
  /** SHA-256 of the token, hexadecimal. */
  readonly tokenHash: string
  readonly userId: number
  /** The user's `sessionEpoch` when the password or the provider's answer was checked. */
  readonly epoch: number
  readonly createdAt: number
  readonly lastSeenAt: number
  readonly expiresAt: number
  readonly ip: string | null
  readonly userAgent: string | null
  /** Issuer that signed the user in; null for a local sign-in. */
  readonly oidcIssuer: string | null
  /** When the user last proved who they are; null: when the session began. */
  readonly authenticatedAt: number | null
  /** How many factors that took; null: not known. */
  readonly factors: number | null
}

/** Keyed by SHA-256 of the token, never the token. `test/contract/session-store.ts` says what each store must do. */
export interface SessionStore extends Counters {
  insert(session: StoredSession): Promise<void>
  /** The session whose `expiresAt` is after `now`. */
  find(tokenHash: string, now: number): Promise<StoredSession | null> | StoredSession | null
  /** Does nothing when the session is gone. */
  extend(tokenHash: string, lastSeenAt: number, expiresAt: number): Promise<void>
  /** Answers whether it was there: of many at once, one removes it. */
  remove(tokenHash: string): Promise<boolean>
  /** Ends all sessions of a user, except the one with the token hash `except`. Answers how many. */
  removeForUser(userId: number, except?: string): Promise<number>
  /** Live sessions of a user, the most recently seen first. */
  list(userId: number, now: number): Promise<StoredSession[]>
  /** Rejects while the store does not answer. Absent: it answers whenever the database does. */
  probe?(): Promise<void>
}

/** Counts what happens in windows of time: attempts at passwords, sign-ins that were used up. */
export interface Counters {
  /**
   * Counts one attempt against `key`, atomically among all instances: the first one opens a window of `windowMs`.
   * Answers the count in the window including this one, and when the window ends.
   */
  hit(key: string, windowMs: number, now: number): Promise<{ count: number; resetAt: number }>
  /** Takes attempts back: `all` of them, or the latest one. */
  forgive(key: string, how: 'all' | 'one'): Promise<void>
  /** Forgets every count whose key begins so. */
  clear(prefix: string): Promise<void>
  /** Drops what has expired. Called now and then; stores that expire by themselves do nothing. */
  sweep(now: number): Promise<void>
}

/** `most` at once, and one more every `everyMs`, which may be a fraction. */
export type BucketSize = { readonly most: number; readonly everyMs: number }

/** What each may do often, but not without end. `test/contract/buckets.ts` says what each implementation must do. */
export interface Buckets {
  /** Takes one out of the bucket `key`, atomically. Answers 0, or the milliseconds until there is one again. */
  take(key: string, size: BucketSize, now: number): Promise<number>
  /** Puts back one that was taken and did nothing. */
  giveBack(key: string, size: BucketSize): Promise<void>
}

/** bcrypt. Passwords arrive normalised and at most 72 bytes long. */
export interface PasswordHasher {
  /** Requests may wait for each other: this runtime drops none in the middle. */
  readonly mayWait?: true
  hash(password: string): Promise<string>
  /** False for a hash that is not bcrypt. `turn`: strangers wait behind those who are known, in a queue of their own. */
  verify(password: string, hash: string, turn: 'known' | 'stranger'): Promise<boolean>
}

/** What one sign-in by OpenID Connect sends along, and checks again at the end. At least 256 bits each. */
export type AttemptSecrets = {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

/** Somebody whom the provider vouches for: issuer and subject are who it is, the profile is for display. */
export type Identity = {
  readonly issuer: string
  readonly subject: string
  readonly profile: Profile
}

/** The OpenID provider, asked over HTTP when it is needed. Each method throws an `OidcFailure` saying what went wrong. */
export interface Oidc {
  readonly issuer: string
  /** Where the browser goes to sign in. */
  authorizationUrl(secrets: AttemptSecrets): Promise<string>
  /** Redeems the code of a callback and checks all that comes of it. */
  identify(callback: { code: string | null; iss: string | null }, secrets: AttemptSecrets): Promise<Identity>
  /** Where the browser goes to sign out there as well; null when the provider has no such page. */
  logoutUrl(): Promise<string | null>
}

export const LINK_STATES = ['connecting', 'handshake', 'connected', 'restarting', 'busy', 'waiting', 'stopped'] as const

export type LinkInfo = {
  readonly name: string
  readonly kind: LinkKind
  readonly state: (typeof LINK_STATES)[number]
  /** When the link entered this state. */
  readonly since: number
  readonly lastFrameAt: number | null
  readonly reconnects: number
  /** Why the link is not connected, in words; null when it is. */
  readonly reason: string | null
  readonly radio: {
    readonly nodeNum: number
    readonly firmwareVersion: string | null
    readonly hwModel: string | null
    readonly role: string | null
  } | null
  readonly queue: { readonly free: number; readonly maxlen: number } | null
  /** Whether the radio may transmit, by its own settings; null until it told. */
  readonly txEnabled: boolean | null
  /** What the radio last had to say to people, in its own words, for example that its key is weak. */
  readonly notice: { readonly at: number; readonly level: string; readonly message: string } | null
}

export const COLLECTOR_STATES = ['idle', 'delivering', 'waiting', 'refused', 'stopped'] as const

/** How the delivery of what is heard here to another service goes. */
export type CollectorInfo = {
  /** Host and port of that service. */
  readonly target: string
  /** `waiting`: it failed and is tried again soon; `refused`: somebody has to change something first. */
  readonly state: (typeof COLLECTOR_STATES)[number]
  /** Messages that are not delivered yet. */
  readonly waiting: number
  readonly lastDeliveredAt: number | null
  /** Since the start. */
  readonly delivered: number
  /** Dropped since the start: too many waited, for too long, or the other service did not understand them. */
  readonly dropped: number
  /** Left out since the start because of COLLECTOR_ONLY and COLLECTOR_SAMPLE_SECONDS. */
  readonly filtered: number
  /** Why nothing is delivered, in words. */
  readonly reason: string | null
}

export type OutgoingKind = 'text' | 'traceroute'

/** A rule of automation as it was when it sent something. */
export type RuleMark = { readonly automationId: number; readonly revision: number }

/** For what a place in a sending queue is. */
export type Reservation = {
  /** Name of the radio's source; null: the first one that can send. */
  readonly radio?: string | null
  /** A rule has a share of the places, and what it sends goes after what people send; null: a person sends. */
  readonly rule?: RuleMark | null
}

/** A place in the sending queue of a radio, until `send` or `release`. */
export type Outgoing = {
  /** Name of the radio's source. */
  readonly source: string
  /** The radio's own node number: the sender. */
  readonly nodeNum: number
  /** For the one packet that goes to this place. */
  readonly packetId: number
  /** The radio's own setting, which no packet may exceed. */
  readonly hopLimit: number
  /** Queues an encoded ToRadio. */
  send(message: Uint8Array): void
  release(): void
}

/** A section of a radio's settings as this connection read it, without its secrets. */
export type LiveSection = SectionView & {
  readonly section: string
  readonly kind: SectionKind
  readonly readAt: number
  /** Another one after any change, also of a secret. Means nothing to another process. */
  readonly revision: string
}

/** What is asked of a section. */
export type SectionChange = SectionInput & {
  /** Paths of risky fields whose change is confirmed. */
  readonly confirm: readonly string[]
  /** The revision that was read; null: whatever there is. */
  readonly revision: string | null
}

/** A change that was checked: no other one of the radio begins until it is over, or released. */
export type PreparedChange = {
  /** Paths; without any there is nothing to do. */
  readonly fields: readonly string[]
  readonly secretsChanged: readonly string[]
  /** By path, without secrets. */
  readonly before: JsonObject
  readonly after: JsonObject
  /** Begins to send; the outcome goes to the row with this id. */
  start(id: string): void
  /** Gives it up, unless it was started. */
  release(): void
}

/** A radio whose settings can be changed. */
export type RadioDevice = {
  /** Name of the radio's source. */
  readonly source: string
  readonly kind: OwnKind
  nodeNum(): number | null
  /** Empty unless the radio is connected and has told everything on this connection. */
  sections(): readonly LiveSection[]
  /**
   * Throws `radio_unavailable`, `invalid_request`, `configuration_changed`, `secret_required`, `confirmation_required`,
   * `configuration_change_in_progress`; nothing is sent then.
   */
  prepare(section: string, change: SectionChange): PreparedChange
}

/** The answer of the process that has the radios; null when none took the request. Throws `radio_unavailable`. */
export type AskElsewhere = () => Promise<Response | null>

/** The radio links of this process. */
export interface Radio {
  links(): readonly LinkInfo[]
  devices(): readonly RadioDevice[]
  /** Events that were heard and are not stored yet. */
  waiting(): number
  /** Null: nothing is delivered anywhere. */
  collector(): CollectorInfo | null
  /** Throws `radio_unavailable`, `queue_full`. */
  reserve(kind: OutgoingKind, asked?: Reservation): Outgoing
  /** Takes back what rules for which this is true send, unless a radio has it already. */
  withdraw(isStale: (rule: RuleMark) => boolean): void
  /** Has the connected radios forget a node, but for one that is the node itself. Absent: none can be told. */
  forgetNode?(nodeNum: number): void
  /** Of each radio that heard this node. */
  hearings(nodeNum: number): readonly Hearing[]
  /** Absent or null: this process has the radios. Else how to have the one that has them answer a request. */
  elsewhere?(c: Context): AskElsewhere | null
  /** Whether another process has admitted and counted this request before it handed it over. */
  isHandedOver?(c: Context): boolean
  /** How the radio that `reserve` would choose modulates; null: it did not tell. */
  lora(): LoraSettings | null
}

/** What has just happened in this process, for those who watch. */
export interface Events {
  /** Names this process among all that ever ran. */
  readonly epoch: string
  publish(events: readonly NewEvent[]): void
  /** Number of the latest event; 0 before the first one. */
  last(): number
  /** At most `limit` events after the one with this number; null when some of them are not kept any more. */
  since(seq: number, limit: number): readonly LiveEvent[] | null
  /** Calls `wake` at each change until the answered function is called; null when the user has too many streams. */
  subscribe(userId: number, wake: () => void): (() => void) | null
  /** Runs something later; answers how to cancel that. */
  after(delayMs: number, run: () => void): () => void
  isClosed(): boolean
  /** Ends all streams: the service stops. */
  close(): void
}

/** Counts what happens in this process, for monitoring. */
export interface Meter {
  /** Monotonic, in milliseconds. */
  now(): number
  /** `route` is a pattern of the app's own. Runs on each request: it must cost next to nothing. */
  countRequest(method: string, route: string, status: number, durationMs: number): void
  /** `portName` as in `Packet`; null: nobody here could decrypt it. */
  countPacket(portName: string | null): void
  countBatch(counts: BatchCounts): void
  /** A run of a rule of automation, as it ended. */
  countAutomation(kind: AutomationKind, result: RunEnd): void
  families(): readonly Family[]
}

/** Backups in the data directory. Any name that can't be a backup's is `backup_not_found`, without a look at the disk. */
export interface Backups {
  /** Newest first. */
  list(): Promise<Backup[]>
  /** Throws `backup_not_found`. */
  find(name: string): Promise<Backup>
  running(): BackupProgress | null
  /** `record` runs when the backup is whole; if it throws, the backup goes. Throws `backup_in_progress`. */
  create(kind: BackupKind, record: (backup: Backup) => Promise<void>): Promise<Backup>
  /** `record` runs when the backup is out of sight; if it throws, the backup comes back. Throws `backup_not_found`. */
  remove(name: string, record: () => Promise<void>): Promise<void>
  /** Reads everything. Throws `backup_not_found`. */
  verify(name: string): Promise<Verification>
  /** A gzipped tar archive, made while it is read. Throws `backup_not_found`. */
  download(name: string): Promise<ReadableStream<Uint8Array>>
  /** When the schedule runs next: now when a run is due, null when it is off. */
  nextRun(schedule: BackupSchedule): number | null
  /** The stored schedule has changed. */
  reschedule(): void
}

export const CLOCK_STATES = ['confirmed', 'ahead', 'behind'] as const

/** A clock that may be wrong, beside the time that is certain to have come. */
export interface ClockWatch {
  /** The time from which ages count when something is deleted: never later than the clock, nor than what is confirmed. */
  trusted(): number
  /** `confirmed`: the time up to which the clock is confirmed. */
  state(): { readonly state: (typeof CLOCK_STATES)[number]; readonly confirmed: number }
  /** What another clock says just now, and whose it is: the clock is confirmed when both say the same. */
  agree(by: string, theirs: number): void
  /** Keeps what is known for the next start, and puts right what was written while the clock was ahead. */
  keep(): Promise<void>
}

/** A disk of which a part is kept for administrators, who can make room only as long as there is some. */
export interface Disk {
  /** Whether nothing that is heard has room. */
  isFull(): boolean
  /** Frees the reserve of a disk that is full: called before administrators change anything, and before old data goes. */
  makeRoom(): void
}

/** A map in one file, which may be exchanged while the service runs. */
export interface MapArchive {
  /** The file as it is now. Throws `map_unavailable`. */
  open(): Promise<OpenMapArchive>
}

export type OpenMapArchive = {
  readonly header: PmtilesHeader
  /** Bytes. */
  readonly size: number
  /** With its quotes; another one when the file is another. */
  readonly etag: string
  /** Reads in pieces and closes the file at its end, or when nobody wants the rest. */
  stream(range: ByteRange): ReadableStream<Uint8Array<ArrayBuffer>>
  close(): Promise<void>
}
