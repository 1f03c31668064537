import { Button, Skeleton, Stack } from '@mantine/core'
import { KeyRound } from 'lucide-react'
import { useState } from 'react'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { ShortTable } from '../parts/list.tsx'
import { Card, PageHead, ProjectLink, useAddress, useOpen } from '../parts/page.tsx'
import { done, Empty, Failure } from '../parts/states.tsx'
import { useAnswer } from '../parts/stats.tsx'
import { UserPicker } from '../parts/users.tsx'
import { type Declaration, definitions } from './words.ts'

const Grant = () => {
  const [{ grant, user }, setAddress] = useAddress<'grant' | 'user'>()
  const [to, setTo] = useState(user)
  const close = () => setAddress({ grant: undefined })
  return (
    <>
      <Button onClick={() => setAddress({ grant: 'yes' }, false)}>Grant an entitlement</Button>
      <Drawer opened={grant === 'yes'} onClose={close} title="Grant an entitlement">
        <Stack gap="sm">
          <UserPicker value={to} onChange={setTo} />
          {to && (
            <OperationForm
              operation="POST /v1/admin/projects/{projectId}/users/{userId}/entitlements"
              path={{ userId: to }}
              words={{
                entitlement_id: { title: 'Entitlement' },
                duration_days: { title: 'Days', help: 'For life if empty' },
                expiration_date: { isHidden: true },
                product_id: { isHidden: true },
                reason: { title: 'Reason' },
              }}
              verb="Grant it"
              onCancel={close}
              onDone={() => {
                void close()
                done('The entitlement is granted.')
              }}
            />
          )}
        </Stack>
      </Drawer>
    </>
  )
}

/** What access can be bought or given. */
export const Page = () => {
  const open = useOpen()
  const { data, error, refetch } = useAnswer<{ monetization: Declaration }>(definitions)
  const entitlements = data?.monetization.entitlements ?? []
  const products = new Map(data?.monetization.products?.map((product) => [product.key, product]))
  const edit = (
    <Button variant="default" onClick={() => open('subscriptions/edit')}>
      Edit
    </Button>
  )
  return (
    <>
      <PageHead
        title="Entitlements"
        about="What access users can buy, or get from you"
        actions={
          <>
            {edit}
            <Grant />
          </>
        }
      />
      {error ? (
        <Failure error={error} onRetry={refetch} />
      ) : !data ? (
        <Skeleton h={160} />
      ) : entitlements.length === 0 ? (
        <div className="card">
          <Empty icon={<KeyRound size={22} />} title="No entitlements declared yet" action={edit}>
            An entitlement is what a purchase gives, such as “pro”. It can be granted by hand, too.
          </Empty>
        </div>
      ) : (
        <Card flush>
          <ShortTable
            name="Entitlements"
            rows={entitlements}
            keyOf={({ key }) => key}
            columns={[
              {
                title: 'Entitlement',
                show: ({ key, display_name, description }) => (
                  <>
                    {display_name ?? key}
                    <span className="cell-sub">{description ?? key}</span>
                  </>
                ),
              },
              {
                title: 'Comes with',
                show: ({ product_keys = [] }) =>
                  product_keys.map((product) => products.get(product)?.display_name ?? product).join(', ') ||
                  'no product yet',
              },
            ]}
          />
        </Card>
      )}
      <p className="links">
        What has to change at the provider is shown in the <ProjectLink to="subscriptions/plan">plan</ProjectLink>.
      </p>
    </>
  )
}
