import { HTTPException } from 'hono/http-exception'
import { failedQuery } from '../base/query-error.ts'
import { ENGLISH, type Said, said, type Words } from '../words/words.ts'

/** Every error the API can answer: its HTTP status and title. Only this file knows statuses. */
export const ERRORS = {
  invalid_request: [400, 'Invalid request'],
  invalid_json: [400, 'Invalid JSON'],
  unauthenticated: [401, 'Not signed in'],
  invalid_credentials: [401, 'Invalid credentials'],
  invalid_code: [401, 'Wrong code'],
  attempt_ended: [401, 'Start the sign-in again'],
  forbidden: [403, 'Permission missing'],
  admin_required: [403, 'Administrators only'],
  local_auth_disabled: [403, 'Local sign-in is disabled'],
  cross_origin: [403, 'Cross-origin request refused'],
  self_change_forbidden: [403, 'Not allowed on your own account'],
  wrong_password: [403, 'Wrong password'],
  reauthentication_required: [403, 'Confirm that it is you'],
  second_factor_required: [403, 'A second factor has to be set up first'],
  passkey_refused: [403, 'Passkey refused'],
  wrong_code: [403, 'Wrong code'],
  see_as_refused: [403, 'Not while you see as somebody else'],
  password_change_required: [403, 'Password change required'],
  not_found: [404, 'Not found'],
  user_not_found: [404, 'User not found'],
  backup_not_found: [404, 'Backup not found'],
  node_not_found: [404, 'Node not found'],
  message_not_found: [404, 'Message not found'],
  token_not_found: [404, 'Token not found'],
  factor_not_found: [404, 'Second factor not found'],
  automation_not_found: [404, 'Automation not found'],
  alert_not_found: [404, 'Alert not found'],
  alert_rule_not_found: [404, 'Alert rule not found'],
  destination_not_found: [404, 'Destination not found'],
  source_not_found: [404, 'Unknown radio'],
  connection_not_found: [404, 'Connection not found'],
  section_not_found: [404, 'Unknown section'],
  proxy_auth_disabled: [404, 'Sign-in through a proxy is not set up'],
  oidc_disabled: [404, 'OpenID Connect is disabled'],
  account_mail_disabled: [404, 'E-mails about accounts are not set up'],
  method_not_allowed: [405, 'Method not allowed'],
  request_timeout: [408, 'Request timeout'],
  username_taken: [409, 'Username taken'],
  identity_taken: [409, 'Belongs to another account'],
  already_linked: [409, 'Already linked'],
  too_many_links: [409, 'Too many linked providers'],
  ruled_by_groups: [409, 'Groups at the provider decide about this account'],
  last_way_in: [409, 'No other way to sign in'],
  not_a_local_user: [409, 'Not a local user'],
  user_inactive: [409, 'User is inactive'],
  nothing_to_confirm: [409, 'No address to confirm'],
  has_signed_in: [409, 'The user has a password already'],
  email_required: [409, 'The user has no e-mail address'],
  last_admin: [409, 'Last administrator'],
  backup_in_progress: [409, 'Backup in progress'],
  backup_unusable: [409, 'Backup cannot be restored'],
  restore_staged: [409, 'A restore is staged already'],
  passkeys_unavailable: [409, 'No passkeys at this address'],
  too_many_passkeys: [409, 'Too many passkeys'],
  no_second_factor: [409, 'No second factor'],
  enrolment_ended: [409, 'Start the setup again'],
  too_many_tokens: [409, 'Too many API tokens'],
  automation_name_taken: [409, 'Automation name taken'],
  automation_unreadable: [409, 'Automation not readable'],
  too_many_automations: [409, 'Too many automations'],
  too_many_alert_rules: [409, 'Too many alert rules'],
  too_many_boards: [409, 'Too many boards'],
  too_many_destinations: [409, 'Too many destinations'],
  alert_rule_unreadable: [409, 'Alert rule not readable'],
  destination_unconfirmed: [409, 'Address not confirmed'],
  destination_held: [409, 'Held until you have looked at it'],
  email_disabled: [409, 'E-mail is not set up'],
  source_taken: [409, 'Source name belongs to somebody else'],
  too_many_sources: [409, 'Too many sources'],
  confirmation_required: [409, 'Confirmation required'],
  secret_required: [409, 'Secret required'],
  configuration_changed: [409, 'Configuration changed meanwhile'],
  configuration_change_in_progress: [409, 'Configuration change in progress'],
  map_in_progress: [409, 'Map download in progress'],
  map_refused: [409, 'Map cannot be downloaded'],
  link_invalid: [410, 'Link no longer valid'],
  node_changed: [412, 'Node changed meanwhile'],
  automation_changed: [412, 'Automation changed meanwhile'],
  alert_rule_changed: [412, 'Alert rule changed meanwhile'],
  payload_too_large: [413, 'Payload too large'],
  text_too_long: [413, 'Text too long'],
  unsupported_media_type: [415, 'Unsupported media type'],
  range_not_satisfiable: [416, 'Range not satisfiable'],
  idempotency_key_reused: [422, 'Idempotency key used for another request'],
  weak_password: [422, 'Password refused'],
  rate_limited: [429, 'Too many attempts'],
  queue_full: [429, 'Sending queue full'],
  headers_too_large: [431, 'Request headers too large'],
  internal: [500, 'Internal error'],
  unsupported_on_this_runtime: [501, 'Not supported on this runtime'],
  radio_unavailable: [503, 'Radio unavailable'],
  database_unavailable: [503, 'Database unavailable'],
  map_unavailable: [503, 'Map file unavailable'],
} as const satisfies Record<string, readonly [status: number, title: string]>

export type ErrorCode = keyof typeof ERRORS

export type Issue = { path: string; message: string }

type Extra = {
  issues?: readonly Issue[]
  required?: { resource: string; action: string }
  /** How a user can prove again who they are. */
  ways?: readonly string[]
  /** What must be confirmed. */
  confirm?: readonly string[]
  /** How large something is, and the maximum. */
  size?: { bytes: number; limit: number }
  /** Seconds; sent as the Retry-After header. */
  retryAfter?: number
  /** Methods; sent as the Allow header. */
  allow?: readonly string[]
  /** Sent as the Content-Range header. */
  contentRange?: string
  /** Tells an HTTP/1 server to take no other request on this connection. */
  closeConnection?: true
  cause?: unknown
}

/** "This request cannot go on." May be thrown anywhere; answered as a problem response. */
export class AppError extends Error {
  override name = 'AppError'
  readonly code: ErrorCode
  readonly extra: Extra
  /** What happened, if it has values in it; else the message says it. */
  readonly said: Said | null

  constructor(code: ErrorCode, detail?: string | Said, extra: Extra = {}) {
    super(
      typeof detail === 'object' ? ENGLISH.tell(detail) : (detail ?? ERRORS[code][1]),
      extra.cause === undefined ? undefined : { cause: extra.cause },
    )
    this.code = code
    this.said = typeof detail === 'object' ? detail : null
    this.extra = extra
  }
}

/**
 * What a message of the database means: that of a trigger, of a condition that ends an atomic step, or of a unique
 * index. Both drivers agree on these messages. Each feature lists its own.
 */
export type Conflict = readonly [message: RegExp, code: ErrorCode]

/**
 * Turns any thrown value into an AppError. An unknown one becomes `internal`, and the answer reveals nothing about its
 * cause.
 */
export function toAppError(error: unknown, conflicts: readonly Conflict[] = []): AppError {
  if (error instanceof AppError) return error
  if (error instanceof HTTPException && error.status < 500) {
    // Hono's message for a body that JSON.parse refuses.
    const code = error.message.startsWith('Malformed JSON') ? 'invalid_json' : 'invalid_request'
    return new AppError(code, undefined, { cause: error })
  }
  return databaseError(error, conflicts) ?? new AppError('internal', undefined, { cause: error })
}

function databaseError(error: unknown, conflicts: readonly Conflict[]): AppError | null {
  for (let e = error, depth = 0; e instanceof Error && depth < 5; e = e.cause, depth++) {
    if (failedQuery(e) !== null) continue
    const { message } = e
    const conflict = conflicts.find(([pattern]) => pattern.test(message))
    if (conflict !== undefined) return new AppError(conflict[1], undefined, { cause: error })
    const told = `${codeOf(e)} ${message}`
    if (UNAVAILABLE.test(told)) {
      const detail = told.includes('SQLITE_FULL') ? DISK_FULL : undefined
      return new AppError('database_unavailable', detail, { cause: error })
    }
  }
  return null
}

export const DISK_FULL = said('The disk of this service is full')

// SQLite's own codes, and D1's messages (developers.cloudflare.com/d1/observability/debug-d1, error list).
const UNAVAILABLE =
  /SQLITE_(BUSY|FULL|IOERR|CANTOPEN|READONLY|CORRUPT)|D1_ERROR.*(D1 DB|storage|Network connection lost|maximum DB size|requests queued)/

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** RFC 9457 problem details, in the language of who reads them. `code` is the same in all. */
export function problem(error: AppError, requestId: string, words: Words = ENGLISH): Response {
  const [status, title] = ERRORS[error.code]
  const { issues, required, ways, confirm, size, retryAfter, allow, contentRange, closeConnection } = error.extra
  const headers = new Headers({
    'content-type': 'application/problem+json',
    'content-language': words.language,
    vary: 'Accept-Language',
  })
  // RFC 9110, 15.5.2: a 401 names the authentication scheme, with a parameter by RFC 6750, 3. No browser asks for a
  // password because of it.
  if (status === 401) headers.set('www-authenticate', 'Bearer realm="mesh"')
  if (retryAfter !== undefined) headers.set('retry-after', String(retryAfter))
  if (allow !== undefined) headers.set('allow', allow.join(', '))
  if (contentRange !== undefined) headers.set('content-range', contentRange)
  if (closeConnection) headers.set('connection', 'close')
  const told = issues?.map(({ path, message }) => ({ path, message: words.translate(message) }))
  const detail = error.said === null ? detailOf(error, told, words) : words.tell(error.said)
  const body = { type: 'about:blank', title: words.translate(title), status, code: error.code, detail, requestId }
  const more = {
    ...(told && { issues: told }),
    ...(required && { required }),
    ...(ways && { ways }),
    ...(confirm && { confirm }),
    ...size,
  }
  return new Response(JSON.stringify({ ...body, ...more }), { status, headers })
}

/** A refusal often lists its issues in one line. */
function detailOf({ message, extra }: AppError, told: readonly Issue[] | undefined, words: Words): string {
  if (told === undefined || extra.issues === undefined || message !== oneLine(extra.issues))
    return words.translate(message)
  return oneLine(told)
}

export function oneLine(issues: readonly Issue[]): string {
  return issues.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('; ')
}
