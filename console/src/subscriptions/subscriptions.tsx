import { Button, Group, Select } from '@mantine/core'
import { CreditCard } from 'lucide-react'
import type { Row } from '../api.ts'
import { Bars, Figure } from '../parts/chart.tsx'
import { List } from '../parts/list.tsx'
import { PageHead, ProjectLink, useAddress, useOpen } from '../parts/page.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { useAnswer } from '../parts/stats.tsx'
import { Status } from '../parts/status.tsx'
import { UserFilter, UserName } from '../parts/users.tsx'
import { meanings, statuses, storeWords } from './words.ts'

type Summary = {
  readonly statuses: Readonly<Record<string, number>>
  readonly trials_30d: { readonly started: number; readonly converted: number }
  readonly active_by_product: readonly {
    readonly product_id: string | null
    readonly store: string
    readonly active: number
  }[]
}

/** Who has access now, and by what. */
export const Page = () => {
  const open = useOpen()
  const [{ user, status, store }, setAddress] = useAddress<'user' | 'status' | 'store'>()
  const { data, error, refetch } = useAnswer<Summary>('GET /v1/admin/projects/{projectId}/subscriptions/summary')
  const of = (name: string) => data?.statuses[name] ?? 0
  const isFiltered = Boolean(user || status || store)
  const started = data?.trials_30d.started ?? 0
  return (
    <>
      <PageHead title="Subscriptions" about="Who has access now, and by what" />
      <div className="column">
        <div className="cards">
          <Figure title="Paying" value={count(data && of('active') + of('grace') + of('cancelled'))} about="users" />
          <Figure title="In a trial" value={count(data && of('trial'))} about="users" />
          <Figure title="Payment late" value={count(data && of('grace'))} about="still with access" />
          <Figure
            title="Trials that paid"
            value={started === 0 ? '—' : `${Math.round(((data?.trials_30d.converted ?? 0) / started) * 100)} %`}
            about={`of ${count(started)} in 30 days`}
          />
        </div>
        {(error || (data && data.active_by_product.length > 0)) && (
          <Bars
            title="Access by product"
            of="Users"
            by="Product"
            bars={data?.active_by_product.map(({ product_id, store: at, active }) => ({
              label: product_id ? `${product_id}, ${storeWords(at)}` : storeWords(at),
              value: active,
            }))}
            error={error}
            onRetry={refetch}
          />
        )}
        <div>
          <Group mb="sm" gap="xs">
            <UserFilter />
            <Select
              aria-label="Only of a status"
              placeholder="All statuses"
              clearable
              clearButtonProps={{ 'aria-label': 'Clear' }}
              data={Object.entries(statuses).map(([value, label]) => ({ value, label }))}
              value={status ?? null}
              onChange={(next) => setAddress({ status: next ?? undefined })}
            />
          </Group>
          <List<Row>
            name="Subscriptions"
            operation="GET /v1/admin/projects/{projectId}/subscriptions"
            query={{ user_id: user, status, store, include: 'user' }}
            to={(row) => `subscriptions/${row['id']}`}
            columns={[
              {
                title: 'User',
                show: (row) => (
                  <UserName id={row['app_user_id'] as string} user={row['user'] as { display_name: string } | null} />
                ),
              },
              {
                title: 'Product',
                show: (row) => (
                  <>
                    <ProjectLink to={`subscriptions/${row['id']}`}>
                      {String(row['product_id'] ?? 'Unknown product')}
                    </ProjectLink>
                    <span className="cell-sub">{storeWords(row['store'])}</span>
                  </>
                ),
              },
              {
                title: 'Status',
                show: (row) => (
                  <Group gap={6}>
                    <Status
                      value={statuses[String(row['status'])] ?? String(row['status'])}
                      meaning={meanings[String(row['status'])] ?? 'none'}
                    />
                    {row['environment'] === 'sandbox' && <Status value="test" meaning="none" />}
                  </Group>
                ),
              },
              { title: 'Since', show: (row) => <When at={row['purchase_date'] as string} /> },
              {
                title: 'Next',
                show: (row) => (
                  <>
                    {row['auto_renew'] ? 'renews ' : 'ends '}
                    <When at={row['expiration_date'] as string | null} none="never" />
                  </>
                ),
              },
            ]}
            empty={
              <Empty
                icon={<CreditCard size={22} />}
                title={isFiltered ? 'Nothing matches' : 'No subscriptions yet'}
                action={
                  isFiltered ? undefined : (
                    <Button variant="default" onClick={() => open('subscriptions/plan')}>
                      Declare what you sell
                    </Button>
                  )
                }
              >
                {isFiltered
                  ? 'Other users or statuses may have some.'
                  : 'They appear as your subscription provider, RevenueCat, reports purchases.'}
              </Empty>
            }
          />
        </div>
      </div>
    </>
  )
}
