import { ActionIcon, Avatar, Button, Divider, Group, Stack, Text, Title, Tooltip } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Pencil, Plus } from 'lucide-react'
import { useState } from 'react'
import { listXpTransactions } from '../../../sdk/src/generated/admin.ts'
import { pairsOf } from '../activity/sentences.tsx'
import { call, type Row } from '../api.ts'
import { Facts } from '../parts/page.tsx'
import { ago, count, When } from '../parts/states.tsx'
import { Id } from '../parts/status.tsx'
import { nameOf } from '../parts/users.tsx'
import { Belongs } from './belongs.tsx'
import { type FullUser, useUser } from './one_user.ts'
import { PropertiesDialog } from './properties.tsx'
import { Standing } from './users.tsx'

/** The XP that a user has, by the newest entry of the ledger. */
export const useXp = () => {
  const { path } = useUser()
  const { data } = useQuery({
    queryKey: ['xp', path.projectId, path.userId],
    queryFn: () =>
      call(listXpTransactions, { path: { projectId: path.projectId }, query: { user_id: path.userId, limit: 1 } }),
  })
  return data && (data.data[0]?.total_after ?? 0)
}

const signInOf = ({ auth_providers, email, email_verified, phone, anonymous_id }: FullUser): string => {
  const ways = [
    ...auth_providers.map(({ provider }) => provider),
    ...(email && email_verified ? ['mail'] : []),
    ...(phone ? ['phone'] : []),
    ...(anonymous_id ? ['anonymous'] : []),
  ]
  return ways.join(', ') || 'none yet'
}

/** Who a user is and what it has, beside every tab. */
export const UserFacts = ({
  user,
  balances,
}: {
  user: FullUser
  balances: Readonly<Record<string, number>> | undefined
}) => {
  const [isEditing, setEditing] = useState(false)
  const xp = useXp()
  const streaks = user.streaks as unknown as readonly Row[]
  const rights = (user.entitlements as readonly Row[]).filter((one) => one['is_active'])
  const properties = pairsOf(user.properties as Row)
  const has: readonly (readonly [string, string])[] = [
    ...Object.entries(balances ?? {}).map(([code, amount]) => [code, count(amount)] as const),
    ...(xp ? [['XP', count(xp)] as const] : []),
    ...streaks
      .filter((one) => Number(one['current_count']) > 0)
      .map((one) => [String(one['name']), `${one['current_count']} in a row`] as const),
    ...rights.map(
      (one) =>
        [
          String(one['entitlement_id']),
          one['expiration_date'] ? `ends ${ago(String(one['expiration_date']))}` : 'for life',
        ] as const,
    ),
  ]
  return (
    <aside className="card sticky" aria-label="Facts">
      <Stack gap="sm">
        <Group gap="sm" wrap="nowrap">
          <Avatar size={40} name={nameOf(user)} src={user.avatar_url} color="initials" aria-hidden />
          <div className="grow">
            <Title order={2} className="title">
              {nameOf(user)}
            </Title>
            <Standing user={user} />
          </div>
        </Group>
        <Facts
          facts={[
            ['Id', <Id key="id" value={user.id} />],
            ...(user.external_id ? [['External id', user.external_id] as const] : []),
            ...(user.email
              ? [['Mail', user.email] as const, ['Mail verified', user.email_verified ? 'yes' : 'no'] as const]
              : []),
            ...(user.phone ? [['Phone', user.phone] as const] : []),
            ['Sign-in', signInOf(user)],
            ...(user.timezone ? [['Time zone', user.timezone] as const] : []),
            ['Joined', <When key="joined" at={user.created_at} />],
            ...(user.muted_until && new Date(user.muted_until) > new Date()
              ? [['Muted until', <When key="muted" at={user.muted_until} />] as const]
              : []),
          ]}
        />
        {has.length > 0 && (
          <>
            <Divider />
            <Facts facts={has.map(([name, value]) => [name, <b key={name}>{value}</b>])} />
          </>
        )}
        <Belongs />
        <Divider />
        <Group justify="space-between">
          <Title order={3}>Properties</Title>
          {properties.length > 0 && (
            <Tooltip label="Edit the properties">
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label="Edit the properties"
                onClick={() => setEditing(true)}
              >
                <Pencil size={14} />
              </ActionIcon>
            </Tooltip>
          )}
        </Group>
        {properties.length > 0 ? (
          <Facts facts={properties} />
        ) : (
          <Group justify="space-between">
            <Text size="sm" c="dimmed">
              None yet
            </Text>
            <Button
              size="compact-xs"
              variant="default"
              leftSection={<Plus size={12} />}
              onClick={() => setEditing(true)}
            >
              Add
            </Button>
          </Group>
        )}
      </Stack>
      <PropertiesDialog
        key={`${user.id} ${user.updated_at}`}
        user={user}
        isOpen={isEditing}
        onClose={() => setEditing(false)}
      />
    </aside>
  )
}
