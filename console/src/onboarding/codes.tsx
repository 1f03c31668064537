import { Button, Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Gift } from 'lucide-react'
import { callAny, type Row } from '../api.ts'
import { Bars, Figure } from '../parts/chart.tsx'
import { activeColumn } from '../parts/definitions/columns.tsx'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { Drawer } from '../parts/drawer.tsx'
import type { FieldWords } from '../parts/form/field.ts'
import { OperationForm } from '../parts/form/form.tsx'
import { rewardWords } from '../parts/form/reward.ts'
import { ShortTable } from '../parts/list.tsx'
import { Card, ProjectLink, useAddress, useProject } from '../parts/page.tsx'
import { count, done, Empty, When } from '../parts/states.tsx'
import { useAnswer } from '../parts/stats.tsx'
import { Status } from '../parts/status.tsx'
import { UserName } from '../parts/users.tsx'

const all = '/v1/admin/projects/{projectId}/referrals'
type Claim = {
  readonly id: string
  readonly claimer_id: string
  readonly user?: { readonly display_name: string | null } | null
  readonly claimed_at: string
  readonly state: 'pending' | 'rewarded' | 'expired'
}
const useStats = (row: Row) =>
  useAnswer<{ total_claims: number; claims: readonly Claim[] }>(
    `GET ${all}/{codeId}/stats`,
    { codeId: String(row['id']) },
    { limit: 100, include: 'user' },
  )

const words: Readonly<Record<string, FieldWords>> = {
  code: { title: 'Code', help: 'Made up if empty; case and dashes do not matter' },
  reward_referee: { title: 'Who claims it gets' },
  reward_referrer: { title: 'Who owns it gets', help: 'A promo code has no owner' },
  max_uses: { title: 'At most', help: 'How often it can be claimed; without end if empty' },
  is_active: { title: 'Active' },
  qualify_event: { title: 'Only after an event', help: 'What the invited user must do before the referrer is paid' },
  qualify_within_days: { title: 'Within days' },
  share_url: { title: 'Address to share', help: 'Such as https://example.org/invite?ref={code}' },
}

/** What codes of users promise. The server tells it in the answer to a change, so an empty change asks for it. */
const Defaults = () => {
  const { path } = useProject()
  const [{ defaults }, setAddress] = useAddress<'defaults'>()
  const isOpen = defaults === 'yes'
  const { data } = useQuery({
    queryKey: ['referral defaults', path.projectId],
    enabled: isOpen,
    queryFn: async () => (await callAny(`PATCH ${all}/defaults`, { path, body: {} })).data as Row,
  })
  const close = () => setAddress({ defaults: undefined })
  return (
    <>
      <Button variant="default" onClick={() => setAddress({ defaults: 'yes' }, false)}>
        Codes of users
      </Button>
      <Drawer opened={isOpen} onClose={close} title="What codes of users give">
        {data ? (
          <OperationForm
            operation={`PATCH ${all}/defaults`}
            row={data}
            words={words}
            verb="Save"
            onCancel={close}
            onDone={() => {
              void close()
              done('Saved. Codes that users have already keep what they promised.')
            }}
          />
        ) : (
          <Skeleton h={320} />
        )}
      </Drawer>
    </>
  )
}

const Owner = ({ row }: { row: Row }) =>
  row['app_user_id'] ? <UserName id={row['app_user_id'] as string} /> : <>Promo code</>

const Detail = ({ row }: { row: Row }) => {
  const { data, error, refetch } = useStats(row)
  const claims = data?.claims ?? []
  const of = (state: Claim['state']) => claims.filter((claim) => claim.state === state).length
  return (
    <>
      <div className="cards">
        <Figure
          title="Claims"
          value={count(data?.total_claims)}
          about={row['max_uses'] ? `of at most ${count(row['max_uses'] as number)}` : 'without a limit'}
        />
        <Figure title="Rewarded" value={count(data && of('rewarded'))} about="of the newest 100" />
        <Figure title="Waiting" value={count(data && of('pending'))} about="for the user to be verified" />
      </div>
      <Bars
        title="Claims by state"
        of="Claims"
        by="State"
        height={160}
        bars={
          data && [
            { label: 'Rewarded', value: of('rewarded') },
            { label: 'Waiting', value: of('pending') },
            { label: 'Expired', value: of('expired') },
          ]
        }
        error={error}
        onRetry={refetch}
      />
      <Card title="Who claimed it" flush>
        {claims.length === 0 ? (
          <Empty icon={<Gift size={22} />} title="No claims yet">
            They appear as users enter the code in your app.
          </Empty>
        ) : (
          <ShortTable
            name="Claims"
            rows={claims}
            keyOf={({ id }) => id}
            columns={[
              { title: 'User', show: ({ claimer_id, user }) => <UserName id={claimer_id} user={user} /> },
              {
                title: 'State',
                show: ({ state }) => (
                  <Status
                    value={state}
                    meaning={state === 'rewarded' ? 'good' : state === 'pending' ? 'warn' : 'none'}
                  />
                ),
              },
              { title: 'Claimed', show: ({ claimed_at }) => <When at={claimed_at} /> },
            ]}
          />
        )}
      </Card>
    </>
  )
}

const kind: Kind = {
  path: 'referrals',
  id: 'codeId',
  at: 'onboarding/codes',
  noun: 'promo code',
  plural: 'referral codes',
  icon: Gift,
  about: 'Codes that reward both sides, of users and of nobody',
  empty: 'Users get a code of their own in your app. A promo code has no owner, and rewards whoever enters it.',
  titleOf: (row) => String(row['code']),
  columns: [
    {
      title: 'Code',
      show: (row) => (
        <ProjectLink to={`onboarding/codes/${row['id']}`} className="mono">
          {String(row['code'])}
        </ProjectLink>
      ),
    },
    { title: 'Of', show: (row) => <Owner row={row} /> },
    {
      title: 'Uses',
      isNumber: true,
      show: (row) =>
        `${count(row['uses'] as number)}${row['max_uses'] ? ` of ${count(row['max_uses'] as number)}` : ''}`,
    },
    { title: 'Gives', show: (row) => rewardWords(row['reward_referee']) ?? 'nothing' },
    { title: 'Made', show: (row) => <When at={row['created_at'] as string} /> },
    activeColumn,
  ],
  words,
  one: { operation: `GET ${all}/{codeId}/stats`, row: (data) => data['referral_code'] as Row },
  tools: Defaults,
  Detail,
}
export const { List, New, One } = pagesOf(kind)
