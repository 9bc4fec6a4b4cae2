import { create, toBinary } from '@bufbuild/protobuf'
import type { Ports } from '../../../app/base/context.ts'
import type { VirtualNodeOptions } from '../../../app/connections/virtual-node-options.ts'
import { AppError } from '../../../app/http/errors.ts'
import { announceNodes, readSent } from '../../../app/mesh/live/details.ts'
import type { Outgoing } from '../../../app/mesh/radios/radio.ts'
import type { DeliveryEvent } from '../../../app/mesh/messages/delivery.ts'
import {
  type AppSender,
  isSent,
  keepMarks,
  mayShareWaypoint,
  recordAppWaypoint,
  storeAppText,
  storeAppTraceroute,
} from '../../../app/mesh/sending/app-packets.ts'
import { encodeAdminPacket } from '../../../meshtastic/link/admin-packets.ts'
import { type AdminVariant, readAdminVariant } from '../../../meshtastic/link/admin-variants.ts'
import { encodeAppPacket } from '../../../meshtastic/link/app-messages.ts'
import { Channel_Role } from '../../../meshtastic/gen/channel_pb.ts'
import type { Data, MeshPacket } from '../../../meshtastic/gen/packet_pb.ts'
import { Routing_Error, UserSchema } from '../../../meshtastic/gen/payloads_pb.ts'
import { type MqttClientProxyMessage, ToRadioSchema } from '../../../meshtastic/gen/stream_pb.ts'
import { BROADCAST } from '../../../meshtastic/node-id.ts'
import type { Store } from '../../../db/store.ts'
import type { Clock } from '../../clock.ts'
import type { Configurator } from '../device-config/configurator.ts'
import type { Link } from '../link.ts'
import type { Transmitter } from '../sending/transmitter.ts'
import { answerFromCopy, marksOf, type Prepared, prepareWrite, refuseContact } from './admin-requests.ts'
import { judgeAdmin } from './admin-policy.ts'
import type { AppClient } from './app-client.ts'
import type { RadioCopy, RadioParts } from './copy.ts'
import type { PacketIds } from './packet-ids.ts'
import { judgePacket, type PacketVerdict } from './packet-policy.ts'
import type { RequestRecords } from './records.ts'
import type { Replies } from './replies.ts'
import type { Sight } from './sight.ts'

/** A radio that was configured is read again after this time; in the middle of an edit, only once that is given up. */
const READ_AGAIN_MS = 15_000
const GIVEN_UP_MS = 120_000

export type AppPacketsOptions = {
  readonly link: Pick<Link, 'info' | 'send' | 'expectRestart' | 'readAgain'>
  readonly transmitter: Pick<Transmitter, 'reserveForApp'>
  readonly claimSettings: Configurator['claimForApp']
  readonly store: Store
  readonly options: VirtualNodeOptions
  readonly copy: RadioCopy
  readonly clock: Clock
  readonly nextId: () => number
  readonly ids: PacketIds
  readonly replies: Replies
  readonly records: RequestRecords
  readonly events: Ports['events']
  /** Runs a task after those added before. */
  readonly later: (task: () => Promise<void>) => void
}

/** Packets from apps on their way to the radio. Calls run one after the other. */
export type AppPackets = {
  take(app: AppClient, packet: MeshPacket, sight: Sight): Promise<void>
  /** A packet of the broker that the app talks to. */
  proxy(message: MqttClientProxyMessage, sight: Sight): void
  /** The radio answers an admin message of an app. */
  onAdminAnswer(requestId: number, error: Routing_Error): void
  stop(): void
}

export function createAppPackets(needs: AppPacketsOptions): AppPackets {
  const { link, transmitter, store, options, copy, clock, nextId, ids, replies, records, events } = needs
  const onDone = new Map<number, (isTaken: boolean) => void>()
  let cancelReading = () => {}
  let isEditing = false
  const senderOf = (app: AppClient, { viewer }: Sight): AppSender => ({
    store,
    now: clock.now,
    address: app.address,
    viewer,
  })
  const readAgainLater = () => {
    cancelReading()
    cancelReading = clock.after(isEditing ? GIVEN_UP_MS : READ_AGAIN_MS, () => {
      isEditing = false
      link.readAgain()
    })
  }
  const tell = (app: AppClient, { id, wantAck: wants }: MeshPacket, kind: Kind, event: DeliveryEvent) => {
    const wantAck = wants && kind !== 'admin'
    if (event.type === 'refused' || event.type === 'not-sent')
      return replies.refuse(app, id, Routing_Error.NO_INTERFACE)
    if (wantAck && event.type === 'withdrawn') replies.routing(app, id, Routing_Error.NO_INTERFACE)
    if (wantAck && event.type === 'lost') replies.routing(app, id, Routing_Error.TIMEOUT)
  }
  const reserve = (app: AppClient, packet: MeshPacket, kind: Kind) =>
    transmitter.reserveForApp({
      kind,
      app: app.id,
      packetId: packet.id,
      onDelivery: (event) => tell(app, packet, kind, event),
    })

  const send = async (app: AppClient, packet: MeshPacket, sight: Sight, own: number, verdict: Sending) => {
    const { data, as, text, waypoint } = verdict
    const sender = senderOf(app, sight)
    if (waypoint !== null && !(await mayShareWaypoint(sender, own, waypoint))) {
      return replies.refuse(app, packet.id, Routing_Error.NOT_AUTHORIZED)
    }
    const outgoing = reserve(app, packet, as)
    const to = packet.to === 0 ? outgoing.nodeNum : packet.to
    const channel = packet.pkiEncrypted ? 0 : sight.numberOf(packet.channel)
    try {
      if (text !== null) {
        const replyId = data.replyId || null
        const bytes = data.payload.length
        await storeAppText(sender, outgoing, { to, channel, text, bytes, replyId, emoji: data.emoji !== 0 })
        events?.publish([await readSent(store, outgoing)])
      }
      if (waypoint !== null) await recordAppWaypoint(sender, outgoing, { to, channel, waypoint })
      if (as === 'traceroute' && to !== BROADCAST) await storeAppTraceroute(sender, outgoing, { to, channel })
      outgoing.send(encodeAppPacket({ ...packet, to }, data, Math.min(packet.hopLimit, outgoing.hopLimit)))
    } finally {
      outgoing.release()
    }
    replies.status(app, packet.id)
  }

  const admin = async (app: AppClient, packet: MeshPacket, data: Data, sight: Sight, parts: RadioParts) => {
    const sender = senderOf(app, sight)
    const variant = readAdminVariant(data.payload)
    const verdict = judgeAdmin(variant, options, sight)
    const refuse = async (error: Routing_Error, request: string, reason: string) => {
      await records.write(sender, { request, outcome: 'refused', reason })
      replies.refuse(app, packet.id, error)
    }
    if (variant === null) return refuse(Routing_Error.BAD_REQUEST, verdict.name, 'it cannot be read')
    if (verdict.kind === 'refused') return refuse(Routing_Error.NOT_AUTHORIZED, verdict.name, verdict.why)
    const { kind, name: request } = verdict
    if (kind === 'dropped') {
      await records.write(sender, { request, outcome: 'dropped' })
      replies.status(app, packet.id)
      if (data.wantResponse) replies.routing(app, packet.id, Routing_Error.NONE)
      return
    }
    if (kind === 'copy') {
      const answer = answerFromCopy(variant, parts, sight, options)
      if (answer === null) return refuse(Routing_Error.BAD_REQUEST, request, 'there is no such section')
      await records.write(sender, { request, outcome: 'answered' })
      replies.admin(app, packet.id, answer)
      if (packet.wantAck) replies.routing(app, packet.id, Routing_Error.NONE)
      return
    }
    if (kind === 'contact') {
      const refusal = refuseContact(variant, parts, sight)
      if (refusal !== null) return refuse(refusal.error, request, refusal.why)
      await records.write(sender, { request, outcome: 'answered' })
      replies.status(app, packet.id)
      if (data.wantResponse || packet.wantAck) replies.routing(app, packet.id, Routing_Error.NONE)
      return
    }
    const prepared: Prepared =
      kind === 'write'
        ? prepareWrite(variant, data.payload, parts, sight, options)
        : { ok: true, payload: data.payload, what: null }
    const what = prepared.what === null ? request : `${request} ${prepared.what}`
    if (!prepared.ok) return refuse(prepared.error, what, prepared.why)
    const isWrite = kind === 'write' || kind === 'reboot'
    const isOpen = variant.number === BEGIN || (isEditing && variant.number !== COMMIT)
    if (isWrite && !needs.claimSettings(isOpen ? GIVEN_UP_MS : 2 * READ_AGAIN_MS, isOpen)) {
      return refuse(Routing_Error.RATE_LIMIT_EXCEEDED, what, 'settings are being changed on the page')
    }
    let outgoing: Outgoing
    try {
      outgoing = reserve(app, packet, 'admin')
    } catch (error) {
      return refuse(errorOf(error), what, error instanceof AppError ? error.message : 'the radio cannot take it')
    }
    try {
      // Recorded before it happens: a change without its entry cannot exist.
      if (!(await records.write(sender, { request: what, outcome: 'passed' })))
        return replies.refuse(app, packet.id, Routing_Error.RATE_LIMIT_EXCEEDED)
      follow(packet.id, kind, variant, { sender, parts })
      outgoing.send(encodeAdminPacket(outgoing.nodeNum, packet.id, prepared.payload))
    } finally {
      outgoing.release()
    }
    replies.status(app, packet.id)
  }

  /** What follows from a message that the radio takes. */
  const follow = (
    packetId: number,
    kind: string,
    variant: AdminVariant,
    { sender, parts }: { readonly sender: AppSender; readonly parts: RadioParts },
  ) => {
    if (kind === 'reboot') link.expectRestart()
    if (kind === 'write') {
      if (variant.number === BEGIN) isEditing = true
      if (variant.number === COMMIT) isEditing = false
      // The radio restarts by itself after most changes.
      if (!isEditing) link.expectRestart()
      readAgainLater()
    }
    const marks = marksOf(variant, parts)
    const nodeNum = variant.value
    if (kind !== 'mark' || nodeNum === null) return
    onDone.set(packetId, (isTaken) => {
      if (marks === null) return
      if (!isTaken) {
        // What it sets is the same again, but a mark that is turned over is the other one.
        if (marks.isMuted !== undefined) copy.mark(nodeNum, { isMuted: !marks.isMuted })
        return
      }
      needs.later(async () => {
        await keepMarks(sender, nodeNum, marks)
        await announceNodes({ store, events }, [nodeNum])
      })
    })
    const [oldest] = onDone.keys()
    if (onDone.size > MAX_WAITING_MARKS && oldest !== undefined) onDone.delete(oldest)
  }

  const handle = async (app: AppClient, packet: MeshPacket, sight: Sight, parts: RadioParts) => {
    const own = parts.myInfo.myNodeNum
    const known = ids.note(packet.id, app.id, clock.now())
    // As the firmware: an app that sends a packet again gets no second answer.
    if (known === 'repeated') return
    if (known === 'collision' || (await isSent(store, { nodeNum: own, packetId: packet.id }))) {
      return replies.refuse(app, packet.id, Routing_Error.BAD_REQUEST)
    }
    const isKnown = (nodeNum: number) => parts.nodes.has(nodeNum)
    const keyOf = (nodeNum: number) => parts.nodes.get(nodeNum)?.info.user?.publicKey ?? NO_KEY
    const isOn = (slot: number) => (parts.channels.get(slot)?.role ?? Channel_Role.DISABLED) !== Channel_Role.DISABLED
    const user = parts.nodes.get(own)?.info.user
    const ownUser = user === undefined ? null : toBinary(UserSchema, user)
    const verdict = judgePacket(packet, { own, sight, isOn, isKnown, keyOf, ownUser })
    if (verdict.kind === 'admin') return admin(app, packet, verdict.data, sight, parts)
    if (verdict.kind === 'send') return send(app, packet, sight, own, verdict)
    if (verdict.isForged) {
      await records.write(senderOf(app, sight), { request: 'packet', outcome: 'refused', reason: verdict.why })
    }
    replies.refuse(app, packet.id, verdict.error)
  }

  return {
    async take(app, asked, sight) {
      const parts = copy.parts()
      if (parts === null) return
      const packet = asked.id === 0 ? { ...asked, id: nextId() } : asked
      try {
        await handle(app, packet, sight, parts)
      } catch (error) {
        replies.refuse(app, packet.id, errorOf(error))
        if (!(error instanceof AppError)) throw error
      }
    },
    proxy(message, sight) {
      if (!options.proxiesMqtt || !sight.seesEverything()) return
      const payloadVariant = { case: 'mqttClientProxyMessage', value: message } as const
      link.send(toBinary(ToRadioSchema, create(ToRadioSchema, { payloadVariant })))
    },
    onAdminAnswer(requestId, error) {
      const done = onDone.get(requestId)
      onDone.delete(requestId)
      done?.(error === Routing_Error.NONE)
    },
    stop: () => cancelReading(),
  }
}

type Kind = Parameters<Transmitter['reserveForApp']>[0]['kind']
type Sending = Extract<PacketVerdict, { kind: 'send' }>

/** The fields of `AdminMessage` between which a radio saves nothing. */
const BEGIN = 64
const COMMIT = 65
const NO_KEY = new Uint8Array(0)
const MAX_WAITING_MARKS = 100

/** `RATE_LIMIT_EXCEEDED` says that it was not sent and can be sent again. */
function errorOf(error: unknown): Routing_Error {
  return error instanceof AppError && error.code === 'queue_full'
    ? Routing_Error.RATE_LIMIT_EXCEEDED
    : Routing_Error.NO_INTERFACE
}
