import * as z from 'zod'
import { parseChannelKey, parsePrivateKey } from '../../meshtastic/config/configured-keys.ts'
import { webhookSecret } from '../base/outgoing/signature.ts'
import { parseAnchorTarget } from './anchor-target.ts'
import { parseGroupPermissions } from './group-permissions.ts'
import { parseHostPort } from './host-port.ts'
import { DOWNLINK_KINDS } from '../../shared/mesh/downlink.ts'
import { COLLECTED_KINDS } from '../../shared/mesh/collected-kinds.ts'
import { LOG_FORMATS, LOG_LEVELS } from '../base/log.ts'
import { TOPIC_FILTER } from './topic-filter.ts'
import { isTimeZone } from './time-zone.ts'
import { callbackIn, CALLBACK_PATH, callbackPathOf, redirectUriBeside } from './callback.ts'
import { DEFAULT_PROVIDER, GROUPS_MISSING, namedVariables, type ProviderSettings, variableName } from './providers.ts'
import { shownText, shownValue } from './shown.ts'
import { isCollectorTarget, isMapArchive, isOrigin, isSecureUrl, isTileUrl } from './secure-url.ts'

/** An environment variable: its parser, its default and its description. */
type Variable = {
  readonly schema: z.ZodType
  readonly meaning: string
  /** The expected value, for the error line that ends the start. */
  readonly expected: string
  readonly secret?: true
}

const boolean = (fallback: boolean) =>
  z
    .enum(['true', 'false'])
    .transform((v) => v === 'true')
    .default(fallback)

const integer = (min: number, max: number, fallback: number) =>
  z
    .string()
    .regex(/^\d{1,15}$/)
    .transform(Number)
    .pipe(z.number().min(min).max(max))
    .default(fallback)

const list = z
  .string()
  .transform((v) =>
    v
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== ''),
  )
  .refine((parts) => parts.length > 0)
  .default([])

/** Text for which `parse` returns null is invalid. */
const parsed = <T extends object>(parse: (text: string) => T | null) =>
  z.string().transform((text, issues): T => {
    const value = parse(text)
    if (value !== null) return value
    issues.addIssue('not of this form')
    return z.NEVER
  })

const claimPath = z
  .string()
  .max(256)
  .regex(/^[^\s.]+(?:\.[^\s.]+)*$/)
  .nullable()
  .default(null)

const url = z.url({ protocol: /^https?$/ }).transform((v) => v.replace(/\/+$/, ''))

const variable = <T extends z.ZodType>(schema: T, expected: string, meaning: string, secret?: true) => ({
  schema,
  expected,
  meaning,
  ...(secret && { secret }),
})

/** Every environment variable of the service, on every runtime. */
export const VARIABLES = {
  PORT: variable(integer(0, 65535, 8080), 'a port number 0–65535', 'Port of the Node service; 0 chooses a free one'),
  HOST: variable(z.string().min(1).default('0.0.0.0'), 'an address', 'Address the Node service listens on'),
  DATA_DIR: variable(
    z.string().min(1).default('./data'),
    'a directory',
    'Database, secret, backups and the map of the region',
  ),
  ALLOW_NETWORK_FILE_SYSTEM: variable(
    boolean(false),
    'true or false',
    'Starts even if DATA_DIR is on a network file system, where other hosts can damage the database',
  ),
  PUBLIC_URL: variable(
    url.nullable().default(null),
    'an http(s) URL',
    'External address, if it differs from that of the request; https sets Secure cookies and HSTS. Links in e-mails begin with it',
  ),
  TRUSTED_PROXIES: variable(
    list.pipe(z.array(z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]))),
    'addresses or CIDR ranges, comma-separated',
    'Proxies whose X-Forwarded-For, -Proto and -Host are trusted',
  ),
  SESSION_SECRET: variable(
    list.pipe(z.array(z.string().min(32)).max(10)),
    'one or more secrets of at least 32 characters, comma-separated',
    'Signs the session cookies: the first secret signs, all verify. Without a value, Node creates one in DATA_DIR',
    true,
  ),
  SESSION_IDLE_TIMEOUT_SECONDS: variable(
    integer(60, 31_536_000, 86_400),
    'seconds, 60–31536000',
    'Time after which an unused session ends',
  ),
  SESSION_ABSOLUTE_TIMEOUT_SECONDS: variable(
    integer(60, 31_536_000, 2_592_000),
    'seconds, 60–31536000',
    'Time after which every session ends',
  ),
  SESSION_STORE: variable(
    z.enum(['database', 'memory', 'redis']).default('database'),
    'database, memory or redis',
    'Where sessions are stored; redis also stores the counters of logins and changes',
  ),
  REDIS_URL: variable(
    z
      .url({ protocol: /^rediss?$/ })
      .nullable()
      .default(null),
    'a redis:// or rediss:// URL',
    'The server for SESSION_STORE=redis',
    true,
  ),
  REDIS_PREFIX: variable(
    z
      .string()
      .regex(/^[\w.-]{1,63}:$/)
      .default('mesh:'),
    '1–63 letters, digits, dots, hyphens or underscores, and a colon',
    'Prefix of all keys in redis; services that share a server need different ones',
  ),
  COOKIE_SECURE: variable(
    z.enum(['auto', 'true', 'false']).default('auto'),
    'auto, true or false',
    'Secure session cookies; auto: if PUBLIC_URL is https or the request came over HTTPS',
  ),
  ADMIN_USERNAME: variable(
    z
      .string()
      .regex(/^[A-Za-z0-9._@-]{1,64}$/)
      .default('admin'),
    '1–64 letters, digits and . _ - @',
    'Username of the first administrator, who is created while there are no users',
  ),
  ADMIN_PASSWORD: variable(
    z.string().min(1).nullable().default(null),
    'a password that meets the rules',
    'Password of the first administrator; without a value a random, temporary one is printed once',
    true,
  ),
  OIDC_ENABLED: variable(boolean(false), 'true or false', 'Sign-in by OpenID Connect'),
  OIDC_PROVIDERS: variable(
    list.pipe(z.array(z.string().regex(/^(?!default$)[a-z][a-z0-9]{0,30}$/)).max(20)),
    'names of at most 31 lower-case letters and digits, comma-separated',
    'More providers: OIDC_A_ISSUER and so on for the provider a. The variables without a name are the provider default',
  ),
  OIDC_ISSUER: variable(
    z.string().max(1024).refine(isCollectorTarget).nullable().default(null),
    'an https URL without query or fragment (http only on loopback)',
    'The OpenID provider, exactly as it names itself',
  ),
  OIDC_CLIENT_ID: variable(
    z.string().max(1024).nullable().default(null),
    'the client id given by the provider',
    'The client ID of this service at the provider',
  ),
  OIDC_CLIENT_SECRET: variable(
    z.string().max(4096).nullable().default(null),
    'the client secret given by the provider',
    'The client secret of this service at the provider',
    true,
  ),
  OIDC_REDIRECT_URI: variable(
    z
      .url({ protocol: /^https?$/ })
      .regex(/^[^#]*$/)
      .nullable()
      .default(null),
    'an http(s) URL without fragment, such as https://mesh.example.org/api/auth/oidc/callback',
    'Where the provider redirects the browser: /api/auth/oidc/callback of this service, or for other providers than the first /api/auth/oidc/callback/<name>',
  ),
  OIDC_SCOPES: variable(
    z
      .string()
      .regex(/^[\x21\x23-\x5b\x5d-\x7e ]+$/)
      .transform((v) => [...new Set(['openid', ...v.split(' ').filter((scope) => scope !== '')])])
      .default(['openid', 'profile', 'email']),
    'scopes separated by spaces',
    'Scopes requested from the provider; openid is always requested',
  ),
  OIDC_NAME: variable(
    z
      .string()
      .max(60)
      .regex(/^[^\p{Cc}\p{Cs}]+$/u)
      .nullable()
      .default(null),
    'a name of at most 60 characters',
    'Name of the provider on the button of the sign-in page',
  ),
  OIDC_ICON: variable(
    z
      .string()
      .max(16_384)
      .regex(/^(?:\/(?!\/)[\w./-]+|data:image\/(?:png|jpeg|webp|svg\+xml);base64,[A-Za-z0-9+/=]+)$/)
      .nullable()
      .default(null),
    'a path of this site, or a data: URL of an image in base64',
    'Picture on that button',
  ),
  OIDC_AUTO_LOGIN: variable(
    boolean(false),
    'true or false',
    'The sign-in page goes straight to the first provider; /login?local=1 shows the page',
  ),
  OIDC_ALLOW_INSECURE_ISSUER: variable(
    boolean(false),
    'true or false',
    'Permits an http issuer on a private network: anybody who can intercept its traffic can sign in as any user',
  ),
  OIDC_USERNAME_CLAIM: variable(
    claimPath,
    'the name of a claim, or a path such as account.login',
    'Claim that contains the username of a new user; default: preferred_username',
  ),
  OIDC_ADMIN_SUBJECT: variable(
    z
      .string()
      .max(255)
      .regex(/^[^\p{Cc}\p{Cs}]+$/u)
      .nullable()
      .default(null),
    'a subject (sub) at the provider',
    'The user who becomes an administrator by signing in, while there is no active one',
  ),
  OIDC_GROUPS_CLAIM: variable(
    claimPath,
    'the name of a claim, or a path such as realm_access.roles',
    'Claim that contains the groups of a user; without it groups are ignored',
  ),
  OIDC_ALLOWED_GROUPS: variable(list, 'groups, comma-separated', 'Who may sign in: members of one of these'),
  OIDC_ADMIN_GROUPS: variable(
    list,
    'groups, comma-separated',
    'Who is an administrator: members of one of these; updated at each sign-in',
  ),
  OIDC_GROUP_PERMISSIONS: variable(
    list.pipe(z.array(parsed(parseGroupPermissions))),
    'group=viewer, group=operator, group=everything or group=nodes:rw+messages:r, comma-separated',
    'What members of groups may do; updated at each sign-in',
  ),
  OIDC_GROUPS_MISSING: variable(
    z.enum(GROUPS_MISSING).nullable().default(null),
    GROUPS_MISSING.join(', '),
    'What a sign-in without that claim means: no group, no change, or no sign-in. Default: no change until the provider has sent the claim for anybody, then no group',
  ),
  OIDC_AUTO_CREATE_USERS: variable(
    boolean(true),
    'true or false',
    'Creates an account at the first sign-in with OpenID Connect',
  ),
  PROXY_AUTH_HEADER: variable(
    z
      .string()
      .regex(/^[A-Za-z][A-Za-z0-9-]{0,63}$/)
      .refine((name) => !/^(?:authorization|cookie|host|origin|forwarded|x-forwarded-.*|sec-.*)$/i.test(name))
      .nullable()
      .default(null),
    'the name of a header, of letters, digits and hyphens, such as Remote-User',
    'The header in which an authenticating proxy among TRUSTED_PROXIES names the user; every user must come through it',
  ),
  DISABLE_LOCAL_AUTH: variable(
    boolean(false),
    'true or false',
    'Disables sign-in with passwords; only OpenID Connect remains',
  ),
  PASSWORD_MIN_LENGTH: variable(integer(8, 64, 15), 'a number 8–64', 'Minimum number of characters of a new password'),
  BREACHED_PASSWORDS_URL: variable(
    url.refine(isCollectorTarget).nullable().default(null),
    'an https URL (http only to this machine or a private network)',
    'A service that finds breached passwords by the first characters of their hash, such as https://api.pwnedpasswords.com/range',
  ),
  LOGIN_MAX_FAILURES: variable(
    integer(1, 1000, 10),
    'a number 1–1000',
    'Allowed failed logins in a window: per account, address, and browser that has signed in before',
  ),
  LOGIN_WINDOW_SECONDS: variable(integer(1, 86_400, 900), 'seconds, 1–86400', 'Length of that window'),
  REQUIRE_SECOND_FACTOR: variable(
    z.enum(['none', 'admins', 'all']).default('none'),
    'none, admins or all',
    'Who must set up a second factor before anything else; for users of a provider, the provider decides',
  ),
  WRITES_PER_MINUTE: variable(
    integer(1, 60_000, 120),
    'a number 1–60000',
    'Changes per minute that each user may make in the long run; one address may make five times as many',
  ),
  WRITE_BURST: variable(
    integer(1, 60_000, 600),
    'a number 1–60000',
    'Changes that each user may make at once before that limit applies; one address may make five times as many',
  ),
  RESTORE_FROM_BACKUP: variable(
    z.string().min(1).max(255).nullable().default(null),
    'the name of a backup',
    'The backup that the next start restores, once',
  ),
  RESTORE_REAPPLY: variable(
    boolean(false),
    'true or false',
    'A restore reapplies the revocations made after the backup, instead of asking administrators',
  ),
  RESTORE_REQUIRE_SIGNATURE: variable(
    boolean(false),
    'true or false',
    'Refuses to restore a backup that was not signed with one of the secrets in SESSION_SECRET',
  ),
  RESTORE_UNSIGNED: variable(
    z.enum(['no', 'yes']).default('no'),
    'no or yes',
    'Restores such a backup even if DATA_DIR has backups that this service signed: set it once, beside the name',
  ),
  RESTART_BY: variable(
    z.enum(['supervisor', 'hand']).nullable().default(null),
    'supervisor or hand',
    'Who starts the service again after it ended itself with an error to restore a backup. Without a value: supervisor under systemd and Kubernetes and as the first process of a container, otherwise hand',
  ),
  LOG_LEVEL: variable(z.enum(LOG_LEVELS).default('info'), LOG_LEVELS.join(', '), 'Minimum level that is logged'),
  LOG_FORMAT: variable(
    z.enum(LOG_FORMATS).nullable().default(null),
    LOG_FORMATS.join(' or '),
    'Without a value: pretty on a terminal, otherwise json',
  ),
  TZ: variable(
    z.string().refine(isTimeZone).nullable().default(null),
    'an IANA time zone such as Europe/Berlin',
    'Time zone of schedules and backup names',
  ),
  MESHTASTIC_TCP: variable(
    list.pipe(
      z.array(
        z
          .string()
          .transform(parseHostPort)
          .pipe(z.object({ host: z.string(), port: z.number() })),
      ),
    ),
    'host or host:port, comma-separated',
    'Radios to connect to; the port is 4403 unless given',
  ),
  MESHTASTIC_MQTT_URL: variable(
    z
      .url({ protocol: /^(mqtts?|wss?)$/ })
      .nullable()
      .default(null),
    'an mqtt://, mqtts://, ws:// or wss:// URL, with user name and password if the broker requires them',
    'A broker to listen to',
    true,
  ),
  MESHTASTIC_MQTT_CA: variable(
    z.string().min(1).nullable().default(null),
    'a file of certificates in PEM form',
    "Additional certificate authorities to trust for the broker, such as the club's own",
  ),
  MESHTASTIC_MQTT_TOPIC: variable(
    z.string().max(1024).regex(TOPIC_FILTER).default('msh/#'),
    'a topic filter such as msh/EU_868/#',
    'Topics to subscribe to at the broker',
  ),
  MESHTASTIC_MQTT_KEYS: variable(
    list.pipe(z.array(parsed(parseChannelKey))),
    'name=base64 of a channel, comma-separated',
    'Channel keys to decrypt packets from the broker; the default key is always tried',
    true,
  ),
  MESHTASTIC_MQTT_PRIVATE_KEYS: variable(
    list.pipe(z.array(parsed(parsePrivateKey))),
    '!nodeid=base64 of a radio, comma-separated',
    'Private keys of own radios, to read direct messages to them from the broker',
    true,
  ),
  COLLECTOR_TARGET_URL: variable(
    url.refine(isCollectorTarget).nullable().default(null),
    'an https URL (http only to this machine or a private network)',
    'Another service of this kind, usually on the edge, to which this one delivers what it hears',
  ),
  COLLECTOR_TOKEN: variable(
    z
      .string()
      .regex(/^mm_[\w-]{43}$/)
      .nullable()
      .default(null),
    'an API token of that service',
    'With the scope ingest',
    true,
  ),
  COLLECTOR_NAME: variable(
    z
      .string()
      .regex(/^[\w.-]{1,40}$/)
      .nullable()
      .default(null),
    '1–40 letters, digits and . _ -',
    'Prefix for the names of the radios at the target, if several collectors have radios of the same name',
  ),
  COLLECTOR_ONLY: variable(
    list.pipe(z.array(z.enum(COLLECTED_KINDS))),
    `${COLLECTED_KINDS.join(', ')}: one or more, comma-separated`,
    'Kinds of packets to deliver; without a value all. Packets from and to own radios are always delivered',
  ),
  COLLECTOR_SAMPLE_SECONDS: variable(
    integer(0, 86_400, 0),
    'seconds, 0–86400',
    'Delivers from each sender at most one position, one node info and one telemetry of each kind in this time; 0: all',
  ),
  COLLECTOR_DOWNLINK: variable(
    list.pipe(z.array(z.enum(DOWNLINK_KINDS))),
    `${DOWNLINK_KINDS.join(', ')}: one or more, comma-separated`,
    'What the other service may have the radios of this one send, and settings: show and change their sections without secrets. Its token needs the scope radio. Without a value nothing',
  ),
  COLLECTOR_DOWNLINK_PER_HOUR: variable(
    integer(1, 1000, 60),
    '1–1000',
    'The most that the radios send in an hour for the other service',
  ),
  HOME_ASSISTANT_MQTT_URL: variable(
    z
      .url({ protocol: /^(mqtts?|wss?)$/ })
      .nullable()
      .default(null),
    'an mqtt://, mqtts://, ws:// or wss:// URL, with user name and password if the broker requires them',
    'A broker of your own on which Home Assistant finds the nodes; without a value nothing is published',
    true,
  ),
  HOME_ASSISTANT_MQTT_CA: variable(
    z.string().min(1).nullable().default(null),
    'a file of certificates in PEM form',
    'Additional certificate authorities to trust for that broker',
  ),
  HOME_ASSISTANT_VIEWER: variable(
    z.string().min(1).max(64).nullable().default(null),
    'a username',
    'The user whose permissions decide what is published there; without a value, what people without an account see',
  ),
  HOME_ASSISTANT_PREFIX: variable(
    z
      .string()
      .regex(/^[A-Za-z0-9_-]{1,60}(?:\/[A-Za-z0-9_-]{1,60}){0,3}$/)
      .default('homeassistant'),
    'letters, digits, hyphens and underscores, with slashes between',
    'The discovery prefix of Home Assistant',
  ),
  HOME_ASSISTANT_TOPIC: variable(
    z
      .string()
      .regex(/^[A-Za-z0-9_-]{1,40}$/)
      .default('mesh'),
    '1–40 letters, digits, hyphens and underscores',
    'Beginning of all other topics; services that share a broker need different ones',
  ),
  SMTP_URL: variable(
    z
      .url({ protocol: /^smtps?$/ })
      .nullable()
      .default(null),
    'an smtp:// or smtps:// URL, with user name and password if the server requires them',
    'The mail server that sends alerts and, with PUBLIC_URL, e-mails about accounts',
    true,
  ),
  SMTP_FROM: variable(z.email().max(254).nullable().default(null), 'an e-mail address', 'Sender of these messages'),
  AUDIT_ANCHOR_URL: variable(
    parsed(parseAnchorTarget).nullable().default(null),
    'an https URL (http only to this machine or a private network), syslog+udp://, syslog+tcp:// or syslog+tls:// and host:port, or mailto: and an e-mail address',
    'Where a daily line with the last entry of the audit log and its hash is sent, so that nobody can rewrite the log unnoticed',
    true,
  ),
  AUDIT_ANCHOR_SECRET: variable(
    webhookSecret.nullable().default(null),
    'whsec_ and base64 of 24 to 64 bytes',
    'Signs these deliveries to an https or http URL, by standardwebhooks.com',
    true,
  ),
  AUDIT_ANCHOR_ENTRIES: variable(boolean(false), 'true or false', 'Sends each entry of the audit log there as well'),
  UPDATE_CHECK_URL: variable(
    url.refine(isCollectorTarget).nullable().default(null),
    'an https URL (http only to this machine or a private network)',
    'Asked once a day, by a plain GET, for the latest version of this service; without a value nobody is asked',
  ),
  MAP_TILE_URL: variable(
    z.string().max(2048).refine(isTileUrl).nullable().default(null),
    'an https URL (http only on loopback) or a path of this site, with {z}, {x} and {y}',
    'Tiles of the map, such as https://tiles.example.org/{z}/{x}/{y}.png; without them it has coasts, borders and towns',
    true,
  ),
  MAP_TILE_ATTRIBUTION: variable(
    z
      .string()
      .max(300)
      .regex(/^[^\p{Cc}\p{Cs}]+$/u)
      .nullable()
      .default(null),
    'a line of at most 300 characters',
    'Attribution of the tiles, shown on the map as plain text; most licences require it',
  ),
  MAP_TILE_MAX_ZOOM: variable(
    integer(1, 24, 19),
    'a number 1–24',
    'The highest zoom level for which MAP_TILE_URL has tiles',
  ),
  MAP_PMTILES: variable(
    z.string().min(1).nullable().default(null),
    'a file',
    'A map in one local file (PMTiles 3, images or vector tiles), instead of MAP_TILE_URL',
  ),
  MAP_ARCHIVE_URL: variable(
    z.string().max(2048).refine(isMapArchive).default('https://build.protomaps.com/{date}.pmtiles'),
    'an https URL (http only to this machine or a private network), with {date} or without',
    'The planet (PMTiles 3) from which a region can be downloaded; nobody is asked before somebody does so. {date}: the latest day that is there, of the last eight, such as 20261128',
  ),
  MAP_ARCHIVE_MAX_MB: variable(
    integer(1, 1_000_000, 4096),
    'megabytes, 1–1000000',
    'The largest region that can be downloaded',
  ),
  EMBED_ORIGINS: variable(
    list.pipe(z.array(z.string().max(255).refine(isOrigin)).max(20)),
    'origins such as https://town.example.org, comma-separated',
    'Sites that may show /embed/map and /embed/node/<id> in a frame while public access is on; the frames of the page Public access may name only these',
  ),
  PUBLIC_INDEXING: variable(
    boolean(false),
    'true or false',
    'Lets search engines list the pages and what public access shows',
  ),
  DEMO: variable(boolean(false), 'true or false', 'Simulates a mesh'),
} as const satisfies Record<string, Variable>

type Environment = Readonly<Record<string, unknown>>

/** All variables: those above, and those of the providers that OIDC_PROVIDERS names. */
function variablesOf(env: Environment): Readonly<Record<string, Variable>> {
  const more = namedProviders(env).flatMap((provider) =>
    namedVariables(provider).map(({ name, like }) => [name, VARIABLES[like]] as const),
  )
  return { ...VARIABLES, ...Object.fromEntries(more) }
}

function namedProviders(env: Environment): readonly string[] {
  return VARIABLES.OIDC_PROVIDERS.schema.safeParse(textOf(env, 'OIDC_PROVIDERS')).data ?? []
}

/** An empty value counts as not set. */
function textOf(env: Environment, name: string): string | undefined {
  const value = env[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** The names of all variables, including those that name files with secrets. */
export function namesOfVariables(env: Environment): readonly string[] {
  return [...Object.keys(variablesOf(env)), ...secretsOf(env).map((name) => `${name}_FILE`)]
}

/** The names of the variables that are secrets. */
export function secretsOf(env: Environment): readonly string[] {
  return Object.entries(variablesOf(env))
    .filter(([, { secret }]) => secret)
    .map(([name]) => name)
}

type Parsed = { [K in keyof typeof VARIABLES]: z.output<(typeof VARIABLES)[K]['schema']> }

/**
 * The settings of a process, named like their variables. OIDC_PROVIDERS contains all providers, the default one first.
 */
export type Config = Readonly<Omit<Parsed, 'OIDC_PROVIDERS'>> & { readonly OIDC_PROVIDERS: readonly ProviderSettings[] }

export type ConfigResult = { ok: true; config: Config } | { ok: false; problems: string[] }

/**
 * Reads the environment. An empty value counts as not set. Each problem is one line: variable, value found (secrets are
 * not shown), and expected value.
 */
export function parseConfig(env: Environment): ConfigResult {
  const variables = variablesOf(env)
  const given = Object.fromEntries(Object.keys(variables).map((name) => [name, textOf(env, name)]))
  const shape = Object.fromEntries(Object.entries(variables).map(([name, { schema }]) => [name, schema]))
  const result = z.object(shape).safeParse(given)
  const invalid = new Set(result.error?.issues.map((issue) => String(issue.path[0])))
  const problems = [
    ...[...invalid].map((name) => problemLine(name, given[name], variables[name])),
    ...contradictions(given),
    ...contradictionsOfProviders(given, namedProviders(env)),
  ]
  if (!result.success || problems.length > 0) return { ok: false, problems: [...new Set(problems)] }
  return { ok: true, config: { ...asParsed(result.data), OIDC_PROVIDERS: readProviders(given, namedProviders(env)) } }
}

// The shape was built from VARIABLES itself, one schema per name, so its output is Parsed.
function asParsed(data: unknown): Parsed {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return data as Parsed
}

function problemLine(name: string, found: string | undefined, variable: Variable | undefined): string {
  const shown = variable?.secret ? '(not shown)' : shownValue(found ?? '')
  return `${name}: found ${shown}, expected ${variable?.expected ?? 'nothing'}`
}

type Given = Readonly<Partial<Record<string, string>>>

function contradictions(given: Given): string[] {
  const { SESSION_STORE, REDIS_URL, OIDC_ENABLED, DISABLE_LOCAL_AUTH, MAP_PMTILES, MAP_TILE_URL } = given
  const { COLLECTOR_TARGET_URL, COLLECTOR_TOKEN, SMTP_URL, SMTP_FROM, PROXY_AUTH_HEADER, TRUSTED_PROXIES } = given
  const { AUDIT_ANCHOR_URL, AUDIT_ANCHOR_SECRET, AUDIT_ANCHOR_ENTRIES } = given
  const problems: string[] = []
  if (SMTP_URL !== undefined && SMTP_FROM === undefined) {
    problems.push('SMTP_FROM: found nothing, expected an e-mail address because SMTP_URL is set')
  }
  if (COLLECTOR_TARGET_URL !== undefined && COLLECTOR_TOKEN === undefined) {
    problems.push('COLLECTOR_TOKEN: found nothing, expected an API token because COLLECTOR_TARGET_URL is set')
  }
  if (AUDIT_ANCHOR_URL?.startsWith('mailto:') === true && SMTP_URL === undefined) {
    problems.push('SMTP_URL: found nothing, expected a mail server because AUDIT_ANCHOR_URL is an e-mail address')
  }
  if (AUDIT_ANCHOR_SECRET !== undefined && !/^https?:/.test(AUDIT_ANCHOR_URL ?? '')) {
    problems.push('AUDIT_ANCHOR_URL: found no http(s) URL, expected one because AUDIT_ANCHOR_SECRET is set')
  }
  if (AUDIT_ANCHOR_ENTRIES === 'true' && AUDIT_ANCHOR_URL === undefined) {
    problems.push('AUDIT_ANCHOR_URL: found nothing, expected an address because AUDIT_ANCHOR_ENTRIES is true')
  }
  if (MAP_PMTILES !== undefined && MAP_TILE_URL !== undefined) {
    problems.push('MAP_PMTILES: found a file, expected nothing because MAP_TILE_URL is set')
  }
  if (SESSION_STORE === 'redis' && REDIS_URL === undefined) {
    problems.push('REDIS_URL: found nothing, expected a redis:// or rediss:// URL because SESSION_STORE is redis')
  }
  if (PROXY_AUTH_HEADER !== undefined && TRUSTED_PROXIES === undefined) {
    problems.push('TRUSTED_PROXIES: found nothing, expected the address of the proxy because PROXY_AUTH_HEADER is set')
  }
  if (OIDC_ENABLED !== 'true' && PROXY_AUTH_HEADER === undefined && DISABLE_LOCAL_AUTH === 'true') {
    problems.push('DISABLE_LOCAL_AUTH: found "true", expected false because OIDC_ENABLED is not true')
  }
  return problems
}

/** If other providers are named, there is a default one only with an issuer. */
function providerNames(given: Given, named: readonly string[]): readonly string[] {
  return named.length === 0 || given['OIDC_ISSUER'] !== undefined ? [DEFAULT_PROVIDER, ...named] : named
}

const providerSchema = z.object({
  OIDC_ISSUER: VARIABLES.OIDC_ISSUER.schema,
  OIDC_CLIENT_ID: VARIABLES.OIDC_CLIENT_ID.schema,
  OIDC_CLIENT_SECRET: VARIABLES.OIDC_CLIENT_SECRET.schema,
  OIDC_SCOPES: VARIABLES.OIDC_SCOPES.schema,
  OIDC_NAME: VARIABLES.OIDC_NAME.schema,
  OIDC_ICON: VARIABLES.OIDC_ICON.schema,
  OIDC_USERNAME_CLAIM: VARIABLES.OIDC_USERNAME_CLAIM.schema,
  OIDC_ADMIN_SUBJECT: VARIABLES.OIDC_ADMIN_SUBJECT.schema,
  OIDC_GROUPS_CLAIM: VARIABLES.OIDC_GROUPS_CLAIM.schema,
  OIDC_ALLOWED_GROUPS: VARIABLES.OIDC_ALLOWED_GROUPS.schema,
  OIDC_ADMIN_GROUPS: VARIABLES.OIDC_ADMIN_GROUPS.schema,
  OIDC_GROUP_PERMISSIONS: VARIABLES.OIDC_GROUP_PERMISSIONS.schema,
  OIDC_GROUPS_MISSING: VARIABLES.OIDC_GROUPS_MISSING.schema,
  OIDC_AUTO_CREATE_USERS: VARIABLES.OIDC_AUTO_CREATE_USERS.schema,
})

/** The providers from checked variables, the default one first; none unless OIDC_ENABLED is true. */
function readProviders(given: Given, named: readonly string[]): ProviderSettings[] {
  if (given['OIDC_ENABLED'] !== 'true') return []
  const names = providerNames(given, named)
  return names.flatMap((id) => {
    const own = namedVariables(id).map(({ name, like }) => [
      like,
      given[name] ?? (SHARED.has(like) ? given[like] : undefined),
    ])
    const read = providerSchema.parse(Object.fromEntries(own))
    const { OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET } = read
    const redirectUri = redirectUriOf(given, id, id === names[0])
    if (OIDC_ISSUER === null || OIDC_CLIENT_ID === null || OIDC_CLIENT_SECRET === null) return []
    if (redirectUri === null) return []
    return {
      id,
      issuer: OIDC_ISSUER,
      clientId: OIDC_CLIENT_ID,
      clientSecret: OIDC_CLIENT_SECRET,
      redirectUri,
      scopes: read.OIDC_SCOPES,
      name: read.OIDC_NAME,
      icon: read.OIDC_ICON,
      usernameClaim: read.OIDC_USERNAME_CLAIM,
      adminSubject: read.OIDC_ADMIN_SUBJECT,
      autoCreateUsers: read.OIDC_AUTO_CREATE_USERS,
      groupsClaim: read.OIDC_GROUPS_CLAIM,
      allowedGroups: read.OIDC_ALLOWED_GROUPS,
      adminGroups: read.OIDC_ADMIN_GROUPS,
      groupPermissions: read.OIDC_GROUP_PERMISSIONS,
      groupsMissing: read.OIDC_GROUPS_MISSING,
    }
  })
}

/**
 * Variables that apply to every provider without a value of its own. Groups and names of one provider mean nothing at
 * another.
 */
const SHARED: ReadonlySet<string> = new Set(['OIDC_AUTO_CREATE_USERS'])

/**
 * The plain variable is the address of the first provider; those of the others are below it. If two providers shared an
 * address, one could send an answer here in the name of the other (RFC 9700, section 4.4).
 */
function redirectUriOf(given: Given, provider: string, isFirst: boolean): string | null {
  const own = given[variableName(provider, 'OIDC_REDIRECT_URI')]
  const plain = given['OIDC_REDIRECT_URI']
  if (own !== undefined) return own
  if (plain === undefined || !URL.canParse(plain)) return null
  return isFirst ? plain : redirectUriBeside(plain, provider)
}

/** Why a valid redirect URI cannot be this provider's; null: it can. */
function wrongCallback(uri: string, provider: string, isFirst: boolean): string | null {
  const callback = callbackIn(uri)
  if (callback === null || callback.provider === provider || (callback.provider === null && isFirst)) return null
  const site = shownText(callback.site)
  const expected = `${site}${callbackPathOf(provider)}`
  return isFirst ? `${expected} or ${site}${CALLBACK_PATH}` : expected
}

/** Problems with the providers: missing values, and values that two of them must not share. */
function contradictionsOfProviders(given: Given, named: readonly string[]): string[] {
  const problems: string[] = []
  const isEnabled = given['OIDC_ENABLED'] === 'true'
  const issuers = new Map<string, string>()
  const callbacks = new Map<string, string>()
  for (const [i, provider] of providerNames(given, named).entries()) {
    const nameOf = (variable: `OIDC_${string}`) => variableName(provider, variable)
    for (const name of NEED_GROUPS.map(nameOf).filter((each) => given[each] !== undefined)) {
      if (given[nameOf('OIDC_GROUPS_CLAIM')] !== undefined) continue
      problems.push(
        `${nameOf('OIDC_GROUPS_CLAIM')}: found nothing, expected the name of a claim because ${name} is set`,
      )
    }
    const redirectUri = redirectUriOf(given, provider, i === 0)
    const isMissing = (variable: (typeof OIDC_REQUIRED)[number]) =>
      variable === 'OIDC_REDIRECT_URI' ? redirectUri === null : given[nameOf(variable)] === undefined
    for (const variable of isEnabled ? OIDC_REQUIRED.filter(isMissing) : []) {
      const why = provider === DEFAULT_PROVIDER ? 'OIDC_ENABLED is true' : `OIDC_PROVIDERS names ${provider}`
      problems.push(`${nameOf(variable)}: found nothing, expected ${VARIABLES[variable].expected} because ${why}`)
    }
    if (isEnabled && redirectUri !== null && URL.canParse(redirectUri)) {
      const expected = wrongCallback(redirectUri, provider, i === 0)
      const other = callbacks.get(redirectUri)
      const name = given[nameOf('OIDC_REDIRECT_URI')] === undefined ? 'OIDC_REDIRECT_URI' : nameOf('OIDC_REDIRECT_URI')
      const found = `${name}: found ${shownValue(redirectUri)}, expected`
      if (expected !== null) problems.push(`${found} ${expected}: each provider has its own address`)
      else if (other !== undefined) problems.push(`${found} another one than ${other}`)
      else callbacks.set(redirectUri, name)
    }
    const issuer = given[nameOf('OIDC_ISSUER')]
    if (issuer === undefined) continue
    if (isCollectorTarget(issuer) && !isSecureUrl(issuer) && given[nameOf('OIDC_ALLOW_INSECURE_ISSUER')] !== 'true') {
      problems.push(problemLine(nameOf('OIDC_ISSUER'), issuer, VARIABLES.OIDC_ISSUER))
    }
    const other = issuers.get(issuer)
    if (other !== undefined) {
      problems.push(`${nameOf('OIDC_ISSUER')}: found ${shownValue(issuer)}, expected another one than ${other}`)
    }
    issuers.set(issuer, nameOf('OIDC_ISSUER'))
  }
  return problems
}

const NEED_GROUPS = [
  'OIDC_ALLOWED_GROUPS',
  'OIDC_ADMIN_GROUPS',
  'OIDC_GROUP_PERMISSIONS',
  'OIDC_GROUPS_MISSING',
] as const

const OIDC_REQUIRED = ['OIDC_ISSUER', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET', 'OIDC_REDIRECT_URI'] as const

/** Path under which a proxy serves this site, without a slash at its end. */
export function basePath({ PUBLIC_URL }: Pick<Config, 'PUBLIC_URL'>): string {
  return PUBLIC_URL === null ? '' : new URL(PUBLIC_URL).pathname.replace(/\/$/, '')
}
