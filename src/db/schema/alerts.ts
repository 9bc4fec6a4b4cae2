import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, real, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import { ALERT_STATES } from '../../shared/alerts/alert-kinds.ts'
import {
  ALERT_DELIVERY_STATES,
  NOTIFICATION_KINDS,
  DESTINATION_KIND_NAMES,
  HELD_FOR,
} from '../../shared/alerts/destination-kinds.ts'
import { users } from './accounts/accounts.ts'
import { flag } from './flag.ts'

// The tables of alerts. Every timestamp is an integer: milliseconds since the Unix epoch.

/** Columns of what a user creates and names. It belongs to the user, and is deleted with the account. */
const ofOwner = () => ({
  id: integer('id').primaryKey({ autoIncrement: true }),
  /** Random: finds the row that was just created. */
  uid: text('uid').notNull().unique(),
  ownerId: integer('owner_id')
    .notNull()
    .references(() => users.id, { onDelete: 'cascade' }),
  name: text('name').notNull(),
})

export const alertRules = sqliteTable(
  'alert_rules',
  {
    ...ofOwner(),
    kind: text('kind').notNull(),
    enabled: flag('enabled').notNull(),
    /** JSON: the whole rule. */
    rule: text('rule').notNull(),
    revision: integer('revision').notNull(),
    /**
     * Earlier events do not count. The time when the rule was created, switched on, or changed to watch something else.
     */
    anchorAt: integer('anchor_at').notNull(),
    createdAt: integer('created_at').notNull(),
    updatedAt: integer('updated_at').notNull(),
  },
  (t) => [index('alert_rules_owner').on(t.ownerId)],
)

/** No foreign key on the rule: sent alerts stay in the history. */
export const alerts = sqliteTable(
  'alerts',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    ruleId: integer('rule_id').notNull(),
    ownerId: integer('owner_id').notNull(),
    ruleName: text('rule_name').notNull(),
    kind: text('kind').notNull(),
    state: text('state', { enum: ALERT_STATES }).notNull(),
    /** The subject: `node:` and a number, or the name of a radio. A rule has one open alert for each. */
    subject: text('subject').notNull(),
    /** Identifies one occurrence: the rule never gets a second alert for it. */
    key: text('key').notNull(),
    nodeNum: integer('node_num'),
    /** The channel of a message; null: none. */
    channel: integer('channel'),
    /** Whether the alert is about a direct message. */
    direct: flag('direct').notNull().default(false),
    /** What happened, as an English sentence of an earlier version; empty: `fact` says it. */
    what: text('what').notNull(),
    /** What happened, without words: JSON of an event and its values. Null: an earlier version wrote the row. */
    fact: text('fact'),
    /** Start of the condition. */
    startedAt: integer('started_at').notNull(),
    firedAt: integer('fired_at'),
    resolvedAt: integer('resolved_at'),
    acknowledgedAt: integer('acknowledged_at'),
    acknowledgedBy: text('acknowledged_by'),
    /**
     * When its owner was last notified; null: not yet, because the rule or the node is silenced or the alert is muted.
     */
    notifiedAt: integer('notified_at'),
    /** The rule fired too often: reported once, then muted. */
    held: flag('held').notNull().default(false),
    /** The radios that hear its node are disconnected. */
    inhibited: flag('inhibited').notNull().default(false),
    /** Identifies the step that last changed it, so that the same step finds it. */
    step: text('step').notNull(),
  },
  (t) => [
    uniqueIndex('alerts_key').on(t.ruleId, t.key),
    uniqueIndex('alerts_open')
      .on(t.ruleId, t.subject)
      .where(sql`state <> 'resolved'`),
    index('alerts_owner').on(t.ownerId, t.id),
    index('alerts_fired').on(t.ruleId, t.firedAt),
    index('alerts_resolved')
      .on(t.resolvedAt)
      .where(sql`state = 'resolved'`),
    index('alerts_step').on(t.step),
  ],
)

export const alertDestinations = sqliteTable(
  'alert_destinations',
  {
    ...ofOwner(),
    kind: text('kind', { enum: DESTINATION_KIND_NAMES }).notNull(),
    enabled: flag('enabled').notNull(),
    /** JSON, including secrets: never leaves the service except in a backup. */
    settings: text('settings').notNull(),
    /** When the owner followed the link in the e-mail; destinations of other kinds are confirmed on creation. */
    confirmedAt: integer('confirmed_at'),
    /** Failed attempts since the last success. */
    failures: integer('failures').notNull().default(0),
    /** Nothing is sent before this time, after a failed attempt. */
    retryAt: integer('retry_at'),
    lastResult: text('last_result'),
    lastAt: integer('last_at'),
    createdAt: integer('created_at').notNull(),
    updatedAt: integer('updated_at').notNull(),
    /** Nothing is sent until the owner has looked at it; null: it is not held. */
    heldAt: integer('held_at'),
    heldFor: text('held_for', { enum: HELD_FOR }),
    /** When it was created or got another address; null once the owner has confirmed the notice about that. */
    newsAt: integer('news_at'),
    /** When the session began in which this happened. */
    newsSession: integer('news_session'),
  },
  (t) => [index('alert_destinations_owner').on(t.ownerId)],
)

/** Messages waiting to be sent, and sent ones. */
export const alertDeliveries = sqliteTable(
  'alert_deliveries',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    /** ID for the receiver, the same at each attempt. */
    uid: text('uid').notNull().unique(),
    destinationId: integer('destination_id')
      .notNull()
      .references(() => alertDestinations.id, { onDelete: 'cascade' }),
    ownerId: integer('owner_id').notNull(),
    /** Null: a test or a summary. */
    ruleId: integer('rule_id'),
    notification: text('notification', { enum: NOTIFICATION_KINDS }).notNull(),
    state: text('state', { enum: ALERT_DELIVERY_STATES }).notNull(),
    createdAt: integer('created_at').notNull(),
    /** Time of the next attempt. */
    dueAt: integer('due_at').notNull(),
    /** The end of the quiet hours that hold it, or held it; null: none did. */
    heldUntil: integer('held_until'),
    attempts: integer('attempts').notNull().default(0),
    /** Time of the first attempt. */
    triedAt: integer('tried_at'),
    endedAt: integer('ended_at'),
    /** The result, in a few words. */
    result: text('result'),
  },
  (t) => [
    index('alert_deliveries_due').on(t.state, t.dueAt),
    index('alert_deliveries_destination').on(t.destinationId, t.state, t.dueAt),
    index('alert_deliveries_tried').on(t.destinationId, t.triedAt),
    index('alert_deliveries_owner').on(t.ownerId, t.id),
    index('alert_deliveries_ended').on(t.endedAt),
  ],
)

/** The alerts of a message. */
export const alertDeliveryItems = sqliteTable(
  'alert_delivery_items',
  {
    deliveryId: integer('delivery_id')
      .notNull()
      .references(() => alertDeliveries.id, { onDelete: 'cascade' }),
    alertId: integer('alert_id')
      .notNull()
      .references(() => alerts.id, { onDelete: 'cascade' }),
  },
  (t) => [primaryKey({ columns: [t.deliveryId, t.alertId] }), index('alert_delivery_items_alert').on(t.alertId)],
)

/** The position of a node when a rule began to watch whether it moves. */
export const alertAnchors = sqliteTable(
  'alert_anchors',
  {
    ruleId: integer('rule_id')
      .notNull()
      .references(() => alertRules.id, { onDelete: 'cascade' }),
    nodeNum: integer('node_num').notNull(),
    latitude: real('latitude').notNull(),
    longitude: real('longitude').notNull(),
  },
  (t) => [primaryKey({ columns: [t.ruleId, t.nodeNum] })],
)

/** How far the audit log has been searched for alerts: one row. */
export const alertMarks = sqliteTable('alert_marks', {
  name: text('name').primaryKey(),
  value: integer('value').notNull(),
})

/** The keys that identify this service to push services, sealed with SESSION_SECRET: one row. */
export const alertPushKeys = sqliteTable('alert_push_keys', {
  id: integer('id').primaryKey(),
  sealed: text('sealed').notNull(),
  createdAt: integer('created_at').notNull(),
})
