import { describe, expect, it, test } from 'vitest'
import {
  authenticatorUri,
  CAPITALS,
  DIGITS,
  fromBase64url,
  fromHex,
  hmacSha256,
  isSameText,
  LETTERS,
  oneTimeCode,
  randomText,
  sha256,
  sha256Hex,
  toBase32,
  toBase64,
  toBase64url,
  toHex,
} from '../../../src/app/base/crypto.ts'

// The vectors of the standards: whatever is behind these functions, their results stay.

const utf8 = new TextEncoder()

describe('SHA-256', () => {
  it.each([
    ['', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
    ['abc', 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'],
    [
      'abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq',
      '248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1',
    ],
    [
      'abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu',
      'cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1',
    ],
    ['a'.repeat(1_000_000), 'cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0'],
  ])('FIPS 180-4: %.20s', (text, hash) => {
    expect(sha256Hex(text)).toBe(hash)
    expect(toHex(sha256(utf8.encode(text)))).toBe(hash)
  })

  it('is the same as that of the platform for every length around its blocks', async () => {
    for (let length = 50; length < 140; length++) {
      const bytes = new Uint8Array(length).map((_, at) => at * 7)
      const expected = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
      expect(toHex(sha256(bytes))).toBe(toHex(expected))
    }
  })
})

describe('HMAC-SHA-256', () => {
  it.each([
    ['\u000b'.repeat(20), 'Hi There', 'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7'],
    ['Jefe', 'what do ya want for nothing?', '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843'],
  ])('RFC 4231: a key of %j', (key, data, mac) => {
    expect(toHex(fromBase64url(hmacSha256(key, data)))).toBe(mac)
  })

  it('hashes a key that is longer than a block, as the platform does', async () => {
    for (const length of [63, 64, 65, 131]) {
      const raw = 'k'.repeat(length)
      const key = await crypto.subtle.importKey('raw', utf8.encode(raw), { name: 'HMAC', hash: 'SHA-256' }, false, [
        'sign',
      ])
      const expected = new Uint8Array(
        await crypto.subtle.sign('HMAC', key, utf8.encode('a larger than block-size key')),
      )
      expect(hmacSha256(raw, 'a larger than block-size key')).toBe(toBase64url(expected))
    }
  })
})

describe('RFC 4648, section 10', () => {
  it.each([
    ['', '', '', ''],
    ['f', 'Zg==', 'MY', '66'],
    ['fo', 'Zm8=', 'MZXQ', '666f'],
    ['foo', 'Zm9v', 'MZXW6', '666f6f'],
    ['foob', 'Zm9vYg==', 'MZXW6YQ', '666f6f62'],
    ['fooba', 'Zm9vYmE=', 'MZXW6YTB', '666f6f6261'],
    ['foobar', 'Zm9vYmFy', 'MZXW6YTBOI', '666f6f626172'],
  ])('%j', (text, base64, base32, hex) => {
    const bytes = utf8.encode(text)
    expect(toBase64(bytes)).toBe(base64)
    expect(toBase64url(bytes)).toBe(base64.replaceAll('=', ''))
    expect(toBase32(bytes)).toBe(base32)
    expect(toHex(bytes)).toBe(hex)
    expect(new TextDecoder().decode(fromBase64url(base64))).toBe(text)
    expect(new TextDecoder().decode(fromHex(hex))).toBe(text)
  })

  it('uses - and _ in addresses', () => {
    expect([toBase64(Uint8Array.of(0xfb, 0xff)), toBase64url(Uint8Array.of(0xfb, 0xff))]).toEqual(['+/8=', '-_8'])
    expect(fromBase64url('-_8')).toEqual(Uint8Array.of(0xfb, 0xff))
  })

  it.each(['Zg*', 'Zm9v+', 'a'])('refuses %j in an address', (text) => {
    expect(() => fromBase64url(text)).toThrow()
  })

  it.each(['6', '6g'])('refuses %j as hexadecimal digits', (text) => {
    expect(() => fromHex(text)).toThrow()
  })
})

describe('one-time codes', () => {
  const SEED = utf8.encode('12345678901234567890')

  it.each(
    ['755224', '287082', '359152', '969429', '338314', '254676', '287922', '162583', '399871', '520489'].map(
      (code, counter) => [counter, code] as const,
    ),
  )('RFC 4226, appendix D: counter %i', async (counter, code) => {
    expect(await oneTimeCode(SEED, counter)).toBe(code)
  })

  // The appendix has eight digits: six are the last ones.
  it.each([
    [59, '94287082'],
    [1_111_111_109, '07081804'],
    [1_111_111_111, '14050471'],
    [1_234_567_890, '89005924'],
    [2_000_000_000, '69279037'],
    [20_000_000_000, '65353130'],
  ])('RFC 6238, appendix B: %i s', async (seconds, code) => {
    expect(await oneTimeCode(SEED, Math.floor(seconds / 30))).toBe(code.slice(2))
  })

  it('the URI names issuer, user and seed', () => {
    const uri = new URL(authenticatorUri('A service', 'anna', SEED, 30))
    expect(decodeURIComponent(`${uri.protocol}//${uri.host}${uri.pathname}`)).toBe('otpauth://totp/A service:anna')
    expect(Object.fromEntries(uri.searchParams)).toMatchObject({
      issuer: 'A service',
      secret: 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ',
      digits: '6',
      period: '30',
    })
  })
})

test('texts are compared as a whole', () => {
  expect(isSameText('wörter', 'wörter')).toBe(true)
  for (const other of ['', 'worter', 'wörte', 'wörterb', 'Wörter']) expect(isSameText('wörter', other)).toBe(false)
})

test('a random text has its length, only its characters, and each of them equally often', () => {
  const characters = `${LETTERS}${CAPITALS}${DIGITS}`
  expect(characters).toBe('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789')
  const text = randomText(62_000, characters)
  expect(text).toHaveLength(62_000)
  const counts = Map.groupBy(text, (character) => character)
  expect(counts.size).toBe(62)
  // 1000 each; the standard deviation is 31.4, so a difference of 8 deviations is no chance.
  for (const each of counts.values()) expect(Math.abs(each.length - 1000)).toBeLessThan(252)
})
