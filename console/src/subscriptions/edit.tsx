import { Skeleton } from '@mantine/core'
import type { FieldWords } from '../parts/form/field.ts'
import { OperationForm } from '../parts/form/form.tsx'
import { PageHead, useOpen } from '../parts/page.tsx'
import { done, Failure } from '../parts/states.tsx'
import { useAnswer } from '../parts/stats.tsx'
import { type Declaration, definitions } from './words.ts'

const at = (part: string, words: Readonly<Record<string, FieldWords>>) =>
  Object.fromEntries(Object.entries(words).map(([name, word]) => [`monetization.${part}.${name}`, word]))

const words: Readonly<Record<string, FieldWords>> = {
  monetization: { title: 'What is sold' },
  'monetization.products': { title: 'Products', help: 'What a store sells' },
  'monetization.entitlements': { title: 'Entitlements', help: 'The access that products give' },
  'monetization.offerings': { title: 'Offerings', help: 'What is offered together' },
  'monetization.paywalls': { title: 'Paywalls', help: 'One for each offering' },
  ...at('products', {
    key: { title: 'Key', help: 'Your own name for it' },
    store_identifier: { title: 'Name in the store', help: 'Such as com.example.monthly' },
    type: { title: 'Kind' },
    display_name: { title: 'Name' },
    store_metadata: { title: 'Further values of the store' },
  }),
  ...at('entitlements', {
    display_name: { title: 'Name' },
    description: { title: 'What it gives' },
    product_keys: { title: 'Comes with these products' },
  }),
  ...at('offerings', {
    display_name: { title: 'Name' },
    is_current: { title: 'Shown now' },
    packages: { title: 'Packages' },
    'packages.offering_key': { isHidden: true },
    'packages.key': { title: 'Package', help: 'Such as $rc_monthly' },
    'packages.product_key': { title: 'Product' },
    'packages.position': { title: 'Place' },
  }),
  ...at('paywalls', {
    offering_key: { title: 'Offering' },
    display: { title: 'How it looks' },
  }),
}

/** What the project sells: it replaces the whole declaration, and changes nothing at the provider. */
export const Page = () => {
  const open = useOpen()
  const { data, error, refetch } = useAnswer<{ monetization: Declaration }>(definitions)
  const back = { title: 'Plan and drift', to: 'subscriptions/plan' }
  return (
    <>
      <PageHead
        title="Edit what is sold"
        about="Nothing changes at the provider until the plan is applied"
        back={back}
      />
      {error ? (
        <Failure error={error} onRetry={refetch} />
      ) : data ? (
        <OperationForm
          isPage
          operation="PUT /v1/admin/projects/{projectId}/monetization/definitions"
          preset={{ monetization: data.monetization }}
          words={words}
          verb="Save what is sold"
          onCancel={() => open('subscriptions/plan')}
          onDone={() => {
            void open('subscriptions/plan')
            done('Saved. The plan shows what has to change at the provider.')
          }}
        />
      ) : (
        <Skeleton h={400} />
      )}
    </>
  )
}
