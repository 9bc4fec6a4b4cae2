import { WHOLE_VIEW } from '../../../accounts/access/visible.ts'
import * as z from 'zod'
import { NO_PERMISSIONS } from '../../../../shared/access/resources.ts'
import { listKeyHealth } from '../../nodes/key-health.ts'
import { defineRule } from '../rule.ts'

/** A public key that is not only its node's. */
export const key = defineRule({
  name: 'key',
  evidence: z.object({ weak: z.boolean().describe('Made with too little entropy'), shared: z.boolean() }),
  async look({ store }) {
    const found = await listKeyHealth({ store, viewer: { view: WHOLE_VIEW, permissions: NO_PERMISSIONS } })
    return found
      .filter(({ weak, sharedWith }) => weak || sharedWith.length > 0)
      .map(({ nodeNum, weak, sharedWith }) => ({
        nodes: [nodeNum, ...sharedWith],
        subject: [nodeNum],
        channels: [],
        isLikely: true,
        evidence: { weak, shared: sharedWith.length > 0 },
      }))
  },
})
