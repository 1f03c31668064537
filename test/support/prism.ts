import { randomUUID } from 'node:crypto'
import { requestText } from '#test/support/request_text.ts'

/** What the relay of proofs/prism.ts does for a request: which server it is for, and under which id its answer is kept. */
export const targetHeader = 'x-prism-target'
export const idHeader = 'x-prism-id'

type Sent = Parameters<typeof requestText>[1]
type Answered = Awaited<ReturnType<typeof requestText>>

/** What prism itself says: about the request, which it has not passed on, or about the answer. */
const problemOf = ({ received, text }: Answered): { type: string; detail: string } | null => {
  if (!String(received['content-type']).startsWith('application/problem+json')) return null
  const { type, detail, validation } = JSON.parse(text)
  const [, name = String(type)] = /^https:\/\/stoplight\.io\/prism\/errors#(.*)$/.exec(type) ?? []
  return { type: name, detail: JSON.stringify(validation ?? detail) }
}

/** Whether prism passes the body on as it is: broken JSON and scalars it never answers, and any other JSON it writes anew, without digits that JavaScript lacks. */
const isKeptBy = (body: string | undefined): boolean => {
  if (body === undefined) return true
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null && JSON.stringify(value) === body
  } catch {
    return false
  }
}

/** The document says nothing of a body where an operation has none, and the server reads none; the client of the tests sends `{}`. */
const isAboutNoBody = (detail: string) =>
  detail.includes('No supported content types, but request included a non-empty body')

/** Answers that prism should describe and cannot read: it looks for JSON in those that have no body. */
const isEmpty = ({ status, text }: Answered) => status === 304 && text === ''

/**
 * Sends a request through `prism proxy --errors`, and answers what the server answered. A request that the document forbids must be one that the server
 * refuses as well; an answer that the document does not describe is always wrong. What is wrong is told to the relay.
 */
export const throughPrism =
  (proxy: string) =>
  async (url: string, sent: Sent): Promise<Answered> => {
    const { origin, pathname, search } = new URL(url)
    if (!isKeptBy(sent.body)) return requestText(url, sent)
    const id = randomUUID()
    const headers = { ...sent.headers, [targetHeader]: origin, [idHeader]: id }
    const answered = await requestText(proxy + pathname + search, { ...sent, headers })
    const problem = problemOf(answered)
    const relay = process.env['TRELLIS_PRISM_RELAY'] ?? ''
    const tell = (what: string, status: number) =>
      requestText(`${relay}/found`, {
        method: 'POST',
        headers: {},
        body: JSON.stringify({
          what,
          status,
          method: sent.method,
          path: pathname + search,
          detail: problem?.detail,
          sent: sent.body,
        }),
      })
    // the answer of the server itself: prism has written it anew
    const { text } = await requestText(`${relay}/kept/${id}`, { method: 'GET', headers: {} })
    if (text !== '') {
      const kept = JSON.parse(text) as Answered
      if (problem && !isEmpty(kept)) await tell('the document does not describe the answer', kept.status)
      return kept
    }
    const direct = await requestText(url, sent)
    if (problem && direct.status < 400 && !isAboutNoBody(problem.detail))
      await tell(`the document forbids the request (${problem.type}), the server does not`, direct.status)
    return direct
  }
