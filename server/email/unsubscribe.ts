/** The page of a link to unsubscribe. */
import { dataOf } from '#server/database/database.ts'
import { workerOf } from '#server/email/worker.ts'
import { refusal } from '#server/errors.ts'
import { acceptedLocales } from '#server/http/languages.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { type ProjectSender, readUnsubscription, type Unsubscription } from '#server/providers/project_mail.ts'

const words = {
  en: [
    'Unsubscribe',
    'Do you want no more mail of this kind from',
    'Unsubscribed: you get no more mail of this kind from',
  ],
  de: [
    'Abbestellen',
    'Möchten Sie keine solchen Nachrichten mehr von',
    'Abbestellt. Sie erhalten keine solchen Nachrichten mehr von',
  ],
  es: [
    'Cancelar suscripción',
    '¿No quieres recibir más mensajes de este tipo de',
    'Suscripción cancelada. No recibirás más mensajes de este tipo de',
  ],
  fr: [
    'Se désabonner',
    'Ne plus recevoir de messages de ce type de',
    'Désabonné. Vous ne recevrez plus de messages de ce type de',
  ],
  pt: [
    'Cancelar subscrição',
    'Não quer receber mais mensagens deste tipo de',
    'Subscrição cancelada. Não receberá mais mensagens deste tipo de',
  ],
  ja: ['配信停止', '今後、この種類のメールの配信を停止しますか。送信元', '配信を停止しました。送信元'],
} as const
type Language = keyof typeof words
const isLanguage = (text: string): text is Language => Object.hasOwn(words, text)

const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`)

const pageOf = (language: Language, brand: string, isDone: boolean): string => {
  const [button, question, done] = words[language]
  const text = isDone ? `${done}: ${brand}.` : `${question}: ${brand}?`
  const form = isDone ? '' : `<form method="post"><button>${escaped(button)}</button></form>`
  return `<!doctype html><html lang="${language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex"><title>${escaped(button)}</title><style>:root{color-scheme:light dark}body{font:16px/1.5 sans-serif;max-width:30rem;margin:4rem auto;padding:0 1rem}button{font:inherit;padding:.5rem 1.5rem}</style></head><body><p>${escaped(text)}</p>${form}</body></html>`
}

export const answerPage = async (
  { request, services }: HandlerContext,
  { project }: Unsubscription,
  failure?: string | null,
) => {
  const isDone = failure !== undefined
  const sender = dataOf<ProjectSender | null>(
    await services.database.call(
      services.control,
      'control_worker',
      { caller: 'worker' },
      'mail_sender',
      { project_id: project },
      { readOnly: true, failure: failure ?? 'FETCH_FAILED' },
    ),
  )
  if (!sender) throw unknownLink()
  const language = acceptedLocales(request)
    .map((locale) => locale.slice(0, 2).toLowerCase())
    .find(isLanguage)
  return {
    status: 200,
    body: pageOf(language ?? 'en', sender.name, isDone),
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy':
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
    },
  }
}

const unknownLink = () => refusal(404, 'NOT_FOUND', 'This link is not valid.')
export const linkOf = ({ params, services }: HandlerContext): Unsubscription => {
  const link = readUnsubscription(services.secrets, String(params['token']))
  if (!link) throw unknownLink()
  return link
}

export const unsubscribe = async (context: HandlerContext) => {
  const at = context.route
  const link = linkOf(context)
  const call = await workerOf(context.services, link.project, at)
  if (!call) throw unknownLink()
  await call('email_unsubscribe', { address: link.address, category: link.category })
  return answerPage(context, link, at.failure)
}
