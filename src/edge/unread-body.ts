/** Sixteen times the largest permitted body. */
const MAX_BYTES = 16 * 1024 * 1024

/**
 * Discards the rest of a request's body. workerd closes the connection once more than 64 KiB are unread
 * (`canceledUploadGraceBytes` in capnproto's kj/compat/http.h), and a client or proxy that is still sending then loses
 * the answer. A body of more than 16 MiB stays unread; one without a length is read up to that size.
 */
export async function discardBody({ headers, body }: Request): Promise<void> {
  if (body === null || body.locked || Number(headers.get('content-length') ?? 0) > MAX_BYTES) return
  const reader = body.getReader()
  try {
    for (let size = 0; size <= MAX_BYTES;) {
      const { done, value } = await reader.read()
      if (done) return
      size += value.length
    }
  } catch {
    // The client went away.
  }
}
