import { computed } from '@preact/signals'
import { place, queryNode, setQuery } from '../../router.ts'

/**
 * The number of the node that the map keeps in its middle, until the user moves the map or chooses another node; null:
 * none. `?node=!a0cb0002&follow=!a0cb0002` says it.
 */
export const followed = computed<number | null>(() => {
  const { query } = place.value
  const id = queryNode(query, 'follow')
  return id !== null && id === queryNode(query, 'node') ? Number.parseInt(id.slice(1), 16) : null
})

export const follow = (nodeId: string): void => setQuery({ follow: nodeId })
export const endFollowing = (): void => setQuery({ follow: '' })
