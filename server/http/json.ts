import { isUtf8 } from 'node:buffer'
import { parseExact } from '#server/json/lossless_json.ts'
import { mostDigits } from '#server/json/numbers.ts'
import { type Problem, type Scan, scanJson } from '#server/json/scan.ts'

/** 1 MB: the limit of a body, both as sent and with its numbers written out. */
export const mostBytes = 1_048_576

const deepest = 200

/** The result of checking a JSON text. */
export type ParsedJson =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'broken'; readonly reason: string }

/** A text that Postgres can store: `size` counts its numbers written out. */
export type CheckedJson =
  | { readonly kind: 'checked'; readonly size: number; readonly isObject: boolean; readonly scan: Scan }
  | { readonly kind: 'broken'; readonly reason: string; readonly problem: Problem }

const reasons: Readonly<Record<Problem, string>> = {
  syntax: 'is not valid JSON',
  depth: `nests more than ${deepest} deep`,
  character: 'has a character that cannot be stored: U+0000 or half of a surrogate pair',
  number: `has a number of more than ${mostDigits} digits before or after its point, written out`,
  size: 'has more than 1 MB with its numbers written out',
}

/**
 * Validates JSON without parsing it: UTF-8, syntax, and that Postgres can store it at a cost that its length bounds. All JSON from
 * callers is validated here before it reaches SQL.
 */
export const checkJson = (bytes: Buffer, subject = 'The body'): CheckedJson => {
  if (!isUtf8(bytes)) return { kind: 'broken', reason: `${subject} is not valid UTF-8.`, problem: 'syntax' }
  const scan: Scan = scanJson(bytes, deepest, Math.max(0, mostBytes - bytes.length))
  const { problem } = scan
  if (problem !== null) return { kind: 'broken', reason: `${subject} ${reasons[problem]}.`, problem }
  return { kind: 'checked', size: bytes.length + scan.gained, isObject: isObjectText(bytes), scan }
}

/** Validates and parses JSON. A number that a double would change is kept as its text (server/json/lossless_json.ts). */
export const parseJson = (bytes: Buffer, subject?: string): ParsedJson => {
  const checked = checkJson(bytes, subject)
  return checked.kind === 'broken' ? checked : { kind: 'value', value: parseExact(bytes, checked.scan) }
}

/** The length of a value as JSON with its numbers written out: the size that limits of stored JSON count. */
export const jsonSize = (value: unknown): { readonly characters: number; readonly bytes: number } => {
  const text = JSON.stringify(value)
  const bytes = Buffer.from(text)
  const { gained } = scanJson(bytes)
  return { characters: text.length + gained, bytes: bytes.length + gained }
}

const isObjectText = (bytes: Buffer): boolean => {
  let at = 0
  while (at < bytes.length && (bytes[at] as number) <= 32) at += 1
  return bytes[at] === 123
}
