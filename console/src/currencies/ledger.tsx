import { Group } from '@mantine/core'
import { ScrollText } from 'lucide-react'
import type { Row } from '../api.ts'
import { ReferenceInput } from '../parts/form/reference_input.tsx'
import { wordsOf } from '../parts/form/schema.ts'
import { List, SearchBox } from '../parts/list.tsx'
import { PageHead, useAddress } from '../parts/page.tsx'
import { RowActions } from '../parts/row_actions.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { UserFilter, UserName } from '../parts/users.tsx'
import { GiveCurrency } from './give.tsx'
import { reasonWords } from './reasons.ts'

const signed = (amount: number) => `${amount > 0 ? '+' : ''}${count(amount)}`
const sources: Readonly<Record<string, string>> = { admin: 'by hand', user: 'in the app', client: 'in the app' }

/** Every change of a balance, with who, why and what is left. */
export const Page = () => {
  const [{ user, currency, reason }, setAddress] = useAddress<'user' | 'currency' | 'reason'>()
  const isFiltered = Boolean(user || currency || reason)
  return (
    <>
      <PageHead title="Currency ledger" about="Every change of a balance, and why" actions={<GiveCurrency />} />
      <Group mb="sm" gap="xs">
        <UserFilter />
        <ReferenceInput
          reference="currency_code"
          aria-label="Only of one currency"
          placeholder="All currencies"
          value={currency}
          onChange={(next) => setAddress({ currency: next })}
        />
        <SearchBox name="reason" label="Only with a reason" placeholder="Reason, such as support" />
      </Group>
      <List<Row>
        name="Currency ledger"
        operation="GET /v1/admin/projects/{projectId}/currencies/transactions"
        query={{ user_id: user, currency_code: currency, reason, include: 'user' }}
        columns={[
          {
            title: 'User',
            show: (row) => (
              <UserName id={row['app_user_id'] as string} user={row['user'] as { display_name: string } | null} />
            ),
          },
          {
            title: 'Reason',
            show: (row) => (
              <>
                {reasonWords(String(row['reason']))}
                <span className="cell-sub">
                  {sources[String(row['source_type'])] ?? wordsOf(String(row['source_type'])).toLowerCase()}
                </span>
              </>
            ),
          },
          { title: 'Amount', isNumber: true, show: (row) => signed(row['amount'] as number) },
          { title: 'Currency', show: (row) => <span className="mono">{String(row['currency_code'])}</span> },
          { title: 'Balance after', isNumber: true, show: (row) => count(row['balance_after'] as number) },
          { title: 'When', show: (row) => <When at={row['created_at'] as string} /> },
          {
            title: 'Actions',
            isNumber: true,
            show: (row) => (
              <RowActions
                isQuiet
                row={row}
                path={{ transactionId: String(row['id']) }}
                actions={[
                  {
                    title: 'Reverse',
                    operation: 'POST /v1/admin/projects/{projectId}/currencies/transactions/{transactionId}/reverse',
                    verb: 'Reverse it',
                    said: 'It is reversed.',
                    isOffered: ({ source_type }) => source_type !== 'refund',
                    asks: () => (
                      <>
                        Another entry of {signed(-Number(row['amount']))} {String(row['currency_code'])} takes this one
                        back. It can be done once.
                      </>
                    ),
                  },
                ]}
              />
            ),
          },
        ]}
        empty={
          <Empty icon={<ScrollText size={22} />} title={isFiltered ? 'Nothing matches' : 'No changes yet'}>
            {isFiltered
              ? 'Other users, currencies or reasons may have entries.'
              : 'Each change of a balance stands here.'}
          </Empty>
        }
      />
    </>
  )
}
