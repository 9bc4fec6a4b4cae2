import { armor, Decrypter } from 'age-encryption'
import { AppError } from '../../../app/http/errors.ts'

const MAX_IDENTITY = 100_000
const ARMORED = '-----BEGIN AGE'
const ENCRYPTED = 'age-encryption.org/'

/** A refusal on the command line. */
export const refused = (text: string) => new AppError('invalid_request', text)

/**
 * Private keys of age, one a line, as age-keygen writes them. `file` may itself be encrypted with a passphrase, as
 * `age -p` does; only then `askPassphrase` is called. Throws AppError.
 */
export async function readIdentities(file: Uint8Array, askPassphrase: () => Promise<string>): Promise<string[]> {
  if (file.length > MAX_IDENTITY) throw refused('The file with the private key is too large to be one')
  const text = Buffer.from(file).toString('latin1')
  const isArmored = text.trimStart().startsWith(ARMORED)
  if (isArmored || text.startsWith(ENCRYPTED)) return plainIdentities(await decrypt(text, isArmored, askPassphrase))
  return plainIdentities(text)
}

async function decrypt(text: string, isArmored: boolean, askPassphrase: () => Promise<string>): Promise<string> {
  const file = isArmored ? unarmored(text) : Buffer.from(text, 'latin1')
  const [, stanza = ''] = Buffer.from(file).toString('latin1', 0, 200).split('\n')
  if (!stanza.startsWith('-> scrypt ')) {
    throw refused('The private key is encrypted for another key: decrypt it first, with age -d')
  }
  const decrypter = new Decrypter()
  decrypter.addPassphrase(await askPassphrase())
  try {
    return await decrypter.decrypt(file, 'text')
  } catch (error) {
    const isOther = error instanceof Error && /no identity matched/i.test(error.message)
    throw refused(
      isOther ? 'This passphrase does not open the private key' : 'The file with the private key is damaged',
    )
  }
}

function unarmored(text: string): Uint8Array {
  try {
    return armor.decode(text)
  } catch {
    throw refused('The file with the private key is damaged')
  }
}

function plainIdentities(text: string): string[] {
  const keys = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
  const [first] = keys
  if (first === undefined) throw refused('There is no private key in this file')
  if (!keys.every((key) => /^AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}$/i.test(key))) {
    throw refused('This is no private key of age: expected AGE-SECRET-KEY-1…')
  }
  return keys.map((key) => key.toUpperCase())
}
