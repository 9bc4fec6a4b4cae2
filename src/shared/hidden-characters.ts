// Control characters, and invisible ones: direction marks, zero-width spaces, fillers, tags. (Unicode, section 5.21:
// ignorable characters have no shape of their own.) Whether variation selectors, joiners and tags are removed depends
// on their neighbours.
const HIDDEN = /[\p{Cc}\p{Default_Ignorable_Code_Point}\u2028\u2029\ufff9-\ufffb]/u
const ALWAYS_HIDDEN =
  /(?![\p{Variation_Selector}\u200c-\u200d\u{e0020}-\u{e007f}])[\p{Cc}\p{Default_Ignorable_Code_Point}\u2028\u2029\ufff9-\ufffb]/gu
/** Tags outside of the flag of a region: a black flag, tags, and the tag that ends them (UTS #51, ED-14a). */
const LONE_TAG = /(\u{1f3f4}[\u{e0020}-\u{e007e}]+\u{e007f})|[\u{e0020}-\u{e007f}]/gu
/** Characters that have variants: emoji, keycaps, Han and Mongolian letters. */
const LONE_SELECTOR =
  /(?<!\p{Extended_Pictographic})(?<![0-9#*](?=[\ufe0e\ufe0f]\u20e3))(?<!\p{Script=Han}(?=[\ufe00-\ufe02\u{e0100}-\u{e01ef}]))(?<!(?=\p{L})\p{Script=Mongolian}(?=[\u180b-\u180f]))\p{Variation_Selector}/gu
/** Scripts whose letters change their shape at a joiner. */
const JOINING =
  '[\\p{Script=Arabic}\\p{Script=Syriac}\\p{Script=Mongolian}\\p{Script=Nko}\\p{Script=Devanagari}\\p{Script=Bengali}\\p{Script=Gurmukhi}\\p{Script=Gujarati}\\p{Script=Oriya}\\p{Script=Tamil}\\p{Script=Telugu}\\p{Script=Kannada}\\p{Script=Malayalam}\\p{Script=Sinhala}\\p{Script=Khmer}\\p{Script=Myanmar}\\p{Script=Tibetan}]'
/** A zero-width joiner between two emoji makes them one. */
const LONE_JOINER = new RegExp(
  `(?<![\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f](?=\\u200d\\p{Extended_Pictographic}))(?<!(?=[\\p{L}\\p{M}])${JOINING}(?=.(?=[\\p{L}\\p{M}])${JOINING}))[\\u200c\\u200d]`,
  'gu',
)

/**
 * The text without control characters, direction marks and invisible characters. With them, one name could look like
 * another, or change the direction of the sentence around it. Joiners, variation selectors and tags stay where an emoji
 * or a script needs them.
 */
export function removeHidden(text: string): string {
  if (!HIDDEN.test(text)) return text
  return text
    .replaceAll(ALWAYS_HIDDEN, '')
    .replaceAll(LONE_TAG, '$1')
    .replaceAll(LONE_SELECTOR, '')
    .replaceAll(LONE_JOINER, '')
}
