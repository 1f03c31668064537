import { expect } from 'vitest'
import type { Answer } from '#test/support/client.ts'

/** A refusal of this status and code. `details` is the field that it names, with a reason where it is a 400, or what is in its details. */
export const expectRefusal = (answer: Answer, status: number, code: string, details?: string | object): void => {
  expect([answer.status, answer.error?.code], answer.text).toEqual([status, code])
  if (details === undefined) return
  const reason = status === 400 ? { reason: expect.any(String) } : {}
  const wanted = typeof details === 'string' ? { field: details, ...reason } : details
  expect(answer.error?.details, answer.text).toMatchObject(wanted)
}

/** 400 VALIDATION_ERROR of this field, for a reason that matches. */
export const expectInvalid = (answer: Answer, field: string, reason?: RegExp | string): void => {
  expectRefusal(answer, 400, 'VALIDATION_ERROR', field)
  if (reason) expect(answer.error?.details.reason).toMatch(reason)
}
