import { Button } from '@mantine/core'
import { KeyRound } from 'lucide-react'
import { grantUserEntitlement, revokeUserEntitlement } from '../../../sdk/src/generated/admin.ts'
import { call, type Row } from '../api.ts'
import { useChosen } from '../parts/chosen.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { List } from '../parts/list.tsx'
import { Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { useUser } from './one_user.ts'

type Grant = {
  readonly id: string
  readonly source: string
  readonly is_active: boolean
  readonly expiration_date: string | null
  readonly reason: string | null
  readonly store: string
}
type Entitlement = {
  readonly entitlement_id: string
  readonly is_active: boolean
  readonly expiration_date: string | null
  readonly purchase_date: string
  readonly grants: readonly Grant[]
}

const sources: Readonly<Record<string, string>> = {
  subscription_provider: 'a store',
  promotional: 'a gift of your team',
  reward: 'a reward',
  referral: 'a referral',
  purchase: 'a purchase',
}

/** What a user may use, and from where. */
export const Entitlements = () => {
  const { path } = useUser()
  const { one: right, isOpen, choose, close } = useChosen<Entitlement>()
  const gift = right?.grants.find(({ source }) => source === 'promotional')
  return (
    <>
      <List<Entitlement>
        name="Entitlements"
        operation="GET /v1/admin/projects/{projectId}/users/{userId}/entitlements"
        path={{ userId: path.userId }}
        query={{ limit: undefined }}
        keyOf={(one) => one.entitlement_id}
        columns={[
          { title: 'Entitlement', show: (one) => <b>{one.entitlement_id}</b> },
          { title: 'Status', show: (one) => <Status value={one.is_active ? 'active' : 'expired'} /> },
          {
            title: 'From',
            show: (one) =>
              one.grants
                .map(({ source, reason }) => `${sources[source] ?? source}${reason ? `: ${reason}` : ''}`)
                .join(', '),
          },
          { title: 'Since', show: (one) => <When at={one.purchase_date} /> },
          { title: 'Ends', show: (one) => <When at={one.expiration_date} none="never" /> },
          {
            title: 'Gift',
            show: (one) =>
              one.grants.some(({ source }) => source === 'promotional') ? (
                <Button size="compact-xs" variant="default" onClick={() => choose(one)}>
                  Take back
                </Button>
              ) : (
                'was bought'
              ),
          },
        ]}
        empty={
          <Empty icon={<KeyRound size={22} />} title="No entitlements">
            Purchases, rewards and gifts give them. To give one: More actions, Entitlement.
          </Empty>
        }
      />
      <Confirm
        title={`Take ${right?.entitlement_id ?? ''} back?`}
        verb="Take back"
        said={({ data }) =>
          data.still_active ? 'The gift is gone. A purchase still gives access.' : 'It is taken back.'
        }
        isOpen={isOpen}
        onClose={close}
        run={() => call(revokeUserEntitlement, { path: { ...path, entitlementId: right?.entitlement_id ?? '' } })}
        undo={() => {
          const body: Row = {
            entitlement_id: right?.entitlement_id,
            ...(gift?.expiration_date ? { expiration_date: gift.expiration_date } : {}),
            ...(gift?.reason ? { reason: gift.reason } : {}),
          }
          return call(grantUserEntitlement, { path, body: body as never })
        }}
      >
        What your team gave ends at once. What was bought in a store stays.
      </Confirm>
    </>
  )
}
