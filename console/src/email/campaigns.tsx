import { Mail } from 'lucide-react'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { campaignActions, campaignColumns, campaignDetail } from '../push/campaigns.tsx'
import { campaignFacts } from '../push/facts.tsx'

const kind: Kind = {
  path: 'email/campaigns',
  id: 'campaignId',
  at: 'email',
  noun: 'campaign',
  plural: 'campaigns',
  icon: Mail,
  about: 'Mail to many users at once, to whoever has a verified address and wants it',
  empty: 'Such as what is new this month, to all users or to a segment.',
  columns: campaignColumns('email'),
  actions: campaignActions('email'),
  Detail: campaignDetail('email'),
  facts: campaignFacts,
}
export const { List, New, One } = pagesOf(kind)
