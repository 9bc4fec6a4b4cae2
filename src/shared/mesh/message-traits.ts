/** What a message can be searched by, beside its text: coordinates in it, a reaction to it, or that it was not delivered. */
export const MESSAGE_TRAITS = ['position', 'reaction', 'error'] as const
export type MessageTrait = (typeof MESSAGE_TRAITS)[number]
