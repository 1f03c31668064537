/** Tokens of developers and keys of machines: the text of one is in the answer that made it, and nowhere else. */
import { dataOf, type Reply } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import type { Answer, HandlerContext } from '#server/http/route.ts'
import { isScope, scopeAreas } from '#server/http/scopes.ts'
import { createOperatorToken, createPersonalToken, createServiceKey } from '#server/http/tokens.ts'

const withText = async (call: Promise<Reply>, text: Readonly<Record<string, string>>): Promise<Answer> => {
  const reply = await call
  return { status: reply.status, body: JSON.stringify({ data: { ...dataOf<object>(reply), ...text } }) }
}

export const createToken = (context: HandlerContext) => {
  const known = scopeAreas(context.services.areas)
  const unknown = (context.body['scopes'] as string[]).findIndex((scope) => !isScope(scope, known))
  if (unknown >= 0) {
    const field = `scopes.${unknown}`
    const reason = 'must be <area>:read, <area>:write, *:read or *:write of an area that there is'
    throw refusal(400, 'VALIDATION_ERROR', `${field}: ${reason}`, { field, reason })
  }
  const { text: token, ...stored } = createPersonalToken()
  return withText(context.call('token_create', { ...context.body, ...stored }), { token })
}

export const rotateToken = (context: HandlerContext) => {
  const { text: token, ...stored } = createPersonalToken()
  return withText(context.call('token_rotate', { token_id: context.params['tokenId'], ...stored }), { token })
}

export const createServiceAccount = (context: HandlerContext) => {
  const { text: key, key_hash } = createServiceKey()
  return withText(context.call('service_account_create', { ...context.body, key_hash }), { key })
}

export const rotateServiceAccount = (context: HandlerContext) => {
  const { text: key, key_hash } = createServiceKey()
  const service_account_id = context.params['serviceAccountId']
  return withText(context.call('service_account_rotate', { service_account_id, key_hash }), { key })
}

export const createOperator = (context: HandlerContext) => {
  const { text: token, token_hash } = createOperatorToken()
  return withText(context.call('operator_token_create', { ...context.body, token_hash }), { token })
}
