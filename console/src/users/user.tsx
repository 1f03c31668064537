import { Group, Skeleton } from '@mantine/core'
import { Suspense } from 'react'
import { lazyPart } from '../outage.ts'
import { PageHead, useAddress } from '../parts/page.tsx'
import { Failure, When } from '../parts/states.tsx'
import { nameOf } from '../parts/users.tsx'
import { Actions } from './actions.tsx'
import { Activity } from './activity.tsx'
import { UserFacts } from './facts.tsx'
import { useUser } from './one_user.ts'
import { Standing } from './users.tsx'

const tabs = {
  activity: { title: 'Activity', Shown: Activity },
  progress: { title: 'Progress', Shown: lazyPart(() => import('./progress.tsx'), 'Progress') },
  balances: { title: 'Balances', Shown: lazyPart(() => import('./balances.tsx'), 'Balances') },
  entitlements: { title: 'Entitlements', Shown: lazyPart(() => import('./entitlements.tsx'), 'Entitlements') },
  inventory: { title: 'Inventory', Shown: lazyPart(() => import('./inventory.tsx'), 'Inventory') },
  messages: { title: 'Messages', Shown: lazyPart(() => import('./messages.tsx'), 'Messages') },
  devices: { title: 'Devices', Shown: lazyPart(() => import('./devices.tsx'), 'Devices') },
  audit: { title: 'Audit', Shown: lazyPart(() => import('./audit.tsx'), 'Audit') },
}

const Tabs = ({ current }: { current: string }) => {
  const [, setAddress] = useAddress<'tab' | 'days'>()
  const names = Object.keys(tabs)
  const go = (at: number) => {
    const name = names[(at + names.length) % names.length]
    void setAddress({ tab: name === 'activity' ? undefined : name, days: undefined })
    requestAnimationFrame(() => document.getElementById(`tab-${name}`)?.focus())
  }
  return (
    <div className="tabs" role="tablist" aria-label="About this user">
      {Object.entries(tabs).map(([name, { title }], at) => (
        <button
          key={name}
          id={`tab-${name}`}
          type="button"
          role="tab"
          className="tab tab-button"
          aria-selected={name === current}
          aria-controls="tab-shown"
          tabIndex={name === current ? 0 : -1}
          data-status={name === current ? 'active' : undefined}
          onClick={() => go(at)}
          onKeyDown={({ key }) => {
            if (key === 'ArrowRight') go(at + 1)
            if (key === 'ArrowLeft') go(at - 1)
          }}
        >
          {title}
        </button>
      ))}
    </div>
  )
}

/** One user: what happened, what it has, and what can be done about it. The facts are at the right of every tab. */
export const Page = () => {
  const { user, balances } = useUser()
  const [{ tab = 'activity' }] = useAddress<'tab'>()
  const name = tab in tabs ? (tab as keyof typeof tabs) : 'activity'
  const { Shown } = tabs[name]
  const back = { title: 'Users', to: 'users' }
  const { data, error } = user
  if (error && !data)
    return (
      <>
        <PageHead title="User" back={back} />
        <Failure error={error} onRetry={user.refetch} />
      </>
    )
  return (
    <>
      <PageHead
        title={data ? nameOf(data) : '…'}
        about={
          data ? (
            <Group gap={6}>
              <span>
                {data.email ?? data.external_id ?? 'anonymous'} · last seen <When at={data.last_seen_at} none="never" />
              </span>
              {(data.is_banned || data.muted_until) && <Standing user={data} />}
            </Group>
          ) : (
            ' '
          )
        }
        back={back}
        actions={data && <Actions user={data} balances={balances} />}
      />
      <div className="split user">
        <div className="column-tabs">
          <Tabs current={name} />
          <div id="tab-shown" role="tabpanel" aria-labelledby={`tab-${name}`}>
            <Suspense fallback={<Skeleton h={320} />}>
              <Shown />
            </Suspense>
          </div>
        </div>
        {data ? <UserFacts user={data} balances={balances} /> : <Skeleton h={420} />}
      </div>
    </>
  )
}
