/**
 * What a terminal would interpret, or nobody would see: control and format characters, and the two line breaks that are neither. No import: the command line
 * has this file in its bundle.
 */
const unseen = /[\p{Cc}\p{Cf}\u2028\u2029]/gu
const unseenRun = new RegExp(`${unseen.source}+`, 'gu')

/** What others wrote, on one line, with a space where such characters were. */
export const plain = (text: unknown): string => String(text ?? '').replace(unseenRun, ' ')

const unitEscape = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

/** The same, with each of them as JSON escapes it, so that it is known what was there. */
export const escaped = (text: string): string => text.replace(unseen, (each) => each.split('').map(unitEscape).join(''))
