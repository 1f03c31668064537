import { Button } from '@mantine/core'
import { Coins } from 'lucide-react'
import { reverseCurrencyTransaction } from '../../../sdk/src/generated/admin.ts'
import type { CurrencyTransaction } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'
import { Figure } from '../parts/chart.tsx'
import { useChosen } from '../parts/chosen.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { ListCard } from '../parts/list_card.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { useUser } from './one_user.ts'

/** What an entry changed: `-30 COINS`. */
const changeOf = ({ kind, amount, currency_code }: CurrencyTransaction): string => {
  const change = kind === 'debit' ? -Math.abs(amount) : amount
  return `${change > 0 ? '+' : ''}${count(change)} ${currency_code}`
}

/** What a user has of each currency, and each change of it. */
export const Balances = () => {
  const { path, balances } = useUser()
  const { one: entry, isOpen, choose, close } = useChosen<CurrencyTransaction>()
  return (
    <div className="column">
      {balances && Object.keys(balances).length > 0 && (
        <div className="cards">
          {Object.entries(balances).map(([code, amount]) => (
            <Figure key={code} title={code} value={count(amount)} about="now" />
          ))}
        </div>
      )}
      <ListCard<CurrencyTransaction>
        title="Ledger"
        operation="GET /v1/admin/projects/{projectId}/currencies/transactions"
        query={{ user_id: path.userId }}
        columns={[
          {
            title: 'Change',
            show: (one) => <b>{changeOf(one)}</b>,
          },
          { title: 'After', isNumber: true, show: (one) => count(one.balance_after) },
          { title: 'Reason', show: (one) => one.reason.replace(/_/g, ' ') },
          { title: 'By', show: (one) => (one.source_type === 'admin' ? 'your team' : one.source_type) },
          { title: 'When', show: (one) => <When at={one.created_at} /> },
          {
            title: 'Back',
            show: (one) =>
              one.source_type === 'refund' ? (
                'is one'
              ) : (
                <Button size="compact-xs" variant="default" onClick={() => choose(one)}>
                  Reverse
                </Button>
              ),
          },
        ]}
        empty={
          <Empty icon={<Coins size={22} />} title="No changes yet">
            What a user earns, buys and spends is listed here. The starting balance of a currency is no change.
          </Empty>
        }
      />
      <Confirm
        title="Reverse this change?"
        verb="Reverse"
        said="It is reversed."
        isOpen={isOpen}
        onClose={close}
        run={() =>
          call(reverseCurrencyTransaction, {
            path: { projectId: path.projectId, transactionId: entry?.id ?? '' },
          })
        }
      >
        {entry && (
          <>
            {changeOf(entry)} for “{entry.reason}” is taken back by another entry. That is possible once.
          </>
        )}
      </Confirm>
    </div>
  )
}
