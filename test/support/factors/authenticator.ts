import { createHash, createSign, generateKeyPairSync, randomBytes } from 'node:crypto'

/** A software authenticator as in CTAP2: one ES256 passkey, for services of one origin. */
export function createAuthenticator(origin: string) {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
  const id = randomBytes(32)
  const rpIdHash = createHash('sha256').update(new URL(origin).hostname).digest()
  let counter = 0
  const clientData = (type: string, challenge: string) => Buffer.from(JSON.stringify({ type, challenge, origin }))
  const authData = (flags: number, rest: Buffer = Buffer.alloc(0)) => {
    const count = Buffer.alloc(4)
    count.writeUInt32BE(counter)
    return Buffer.concat([rpIdHash, Buffer.from([flags]), count, rest])
  }
  const common = { id: id.toString('base64url'), rawId: id.toString('base64url'), type: 'public-key' }
  return {
    /** Answers `navigator.credentials.create` in JSON; `packed`: attested by the key itself (WebAuthn, 6.5.4). */
    create: (challenge: string, format: 'none' | 'packed' | 'apple' = 'none') => {
      // RFC 9052: kty EC2, alg ES256, crv P-256, x, y.
      const point = (label: number, value: string) =>
        Buffer.concat([Buffer.from([label, 0x58, 32]), Buffer.from(value, 'base64url')])
      const key = Buffer.concat([Buffer.from('a5010203262001', 'hex'), point(0x21, x), point(0x22, y)])
      const attested = Buffer.concat([Buffer.alloc(16), Buffer.from([0, id.length]), id, key])
      // User present and verified, attested credential data.
      const data = authData(0x45, attested)
      const client = clientData('webauthn.create', challenge)
      const signed = Buffer.concat([data, createHash('sha256').update(client).digest()])
      const signature = createSign('sha256').update(signed).sign(privateKey)
      const statement = Buffer.concat([Buffer.from('a263616c672663736967', 'hex'), bytes(signature)])
      const object = Buffer.concat([
        Buffer.from([0xa3]),
        text('fmt'),
        text(format),
        text('attStmt'),
        format === 'none' ? Buffer.from([0xa0]) : statement,
        text('authData'),
        bytes(data),
      ])
      const clientDataJSON = client.toString('base64url')
      return { ...common, response: { clientDataJSON, attestationObject: object.toString('base64url') } }
    },
    /**
     * Answers `navigator.credentials.get` in JSON; each time with a higher counter. `userHandle`: the user that it was
     * made for, which a discoverable passkey names.
     */
    get: (
      challenge: string,
      {
        isVerified = true,
        grows = true,
        userHandle,
      }: { isVerified?: boolean; grows?: boolean; userHandle?: string } = {},
    ) => {
      if (grows) counter++
      const data = authData(isVerified ? 0x05 : 0x01)
      const client = clientData('webauthn.get', challenge)
      const signed = Buffer.concat([data, createHash('sha256').update(client).digest()])
      return {
        ...common,
        response: {
          clientDataJSON: client.toString('base64url'),
          authenticatorData: data.toString('base64url'),
          signature: createSign('sha256').update(signed).sign(privateKey).toString('base64url'),
          ...(userHandle !== undefined && { userHandle }),
        },
      }
    },
  }
}

// CBOR (RFC 8949) of strings up to 23 and 255 bytes.
function text(value: string): Buffer {
  return Buffer.concat([Buffer.from([0x60 + value.length]), Buffer.from(value)])
}

function bytes(value: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0x58, value.length]), value])
}
