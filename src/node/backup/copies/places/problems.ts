import { SendFailure } from '../../../../app/base/outgoing/ports.ts'
import { type Said, said } from '../../../../app/words/words.ts'

/** Why a place has no copy. The rest of an answer is never shown. */
export const PROBLEMS = {
  refused: said('The place refuses the credentials'),
  forbidden: said('The place does not permit this with these credentials'),
  missing: said('The place does not have this folder or bucket'),
  redirected: said('The place redirects to another address: enter that one, or another region'),
  full: said('The place has no room left'),
  tooLarge: said('The place refuses a file of this size'),
  clock: said('The place refuses the time of this machine: check its clock'),
  busy: said('The place is busy or broken'),
  stalled: said('The place stopped answering'),
  cut: said('The connection to the place was cut'),
  unknown: said('The place gave an answer that is not understood'),
  untrusted: said('The certificate of the place is not from an authority that is trusted'),
  unreadableCa: said(
    'The certificates of your own authority cannot be read: enter them in PEM form, each from BEGIN to END CERTIFICATE',
  ),
  expired: said('The certificate of the place has expired, or is not valid yet'),
  otherName: said('The certificate of the place is for another name'),
  noTls: said('The place does not speak TLS at this address'),
  otherSize: said('The place has a file of another size than was sent'),
  otherContent: said('The place has a file with other content than was sent'),
  gone: said('The file is not at the place'),
  notMounted: said('The disk of this folder is not mounted, or is another one'),
  noFolder: said('There is no such folder, or the service may not write there'),
  foreign: said(
    'The copies of another service are here: choose another folder or prefix, or delete the file .mesh-copies there first',
  ),
  tooMany: said('There are too many files at the place: give the copies a folder or prefix of their own'),
  inDataDir: said('This folder is part of the data of the service'),
  ownNetwork: said('This address is in a private network: confirm that it is your own'),
  ownDisk: said('The disk of the service has no room for the encrypted archive'),
  sealed: said('The credentials of this place cannot be opened: enter them again'),
  noRecipient: said('There is no key for which copies could be encrypted'),
  internal: said('The service could not make the copy: its log says why'),
  unreadable: said('The backup could not be read'),
} as const satisfies Readonly<Record<string, Said>>

export type Problem = keyof typeof PROBLEMS

/** `isPassing`: the same request may succeed a moment later. */
export class CopyFailure extends SendFailure {
  override name = 'CopyFailure'
  readonly problem: Problem
  readonly isPassing: boolean

  constructor(problem: Problem, isPassing = false) {
    super(PROBLEMS[problem].text)
    this.problem = problem
    this.isPassing = isPassing
  }
}

/** What the status of an answer means. */
export function failureOf(status: number): CopyFailure {
  if (status === 401) return new CopyFailure('refused')
  if (status === 403) return new CopyFailure('forbidden')
  if (status === 404 || status === 409) return new CopyFailure('missing')
  if (status === 413) return new CopyFailure('tooLarge')
  if (status === 507) return new CopyFailure('full')
  if (status >= 300 && status < 400) return new CopyFailure('redirected')
  if (status === 408 || status === 423 || status === 429 || status >= 500) return new CopyFailure('busy', true)
  return new CopyFailure('unknown')
}
