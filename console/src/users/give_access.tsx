import { Autocomplete, SegmentedControl, Select, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import {
  createRoleAssignment,
  deleteRoleAssignment,
  grantUserEntitlement,
  listRoles,
  revokeUserEntitlement,
} from '../../../sdk/src/generated/admin.ts'
import { call, callAny, type Row } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { useProject } from '../parts/page.tsx'
import { nameOf } from '../parts/users.tsx'
import { None } from './give_parts.tsx'
import type { DialogProps } from './one_user.ts'

const lengths = [
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
  { value: '365', label: 'A year' },
  { value: '', label: 'For life' },
]

/** Gives an entitlement for a time, or for life. */
export const GiveEntitlement = ({ user, isOpen, onClose }: DialogProps) => {
  const { path } = useProject()
  const [key, setKey] = useState('')
  const [days, setDays] = useState('30')
  const held = user.entitlements as readonly Row[]
  const { data } = useQuery({
    queryKey: ['entitlements', path.projectId],
    queryFn: async () => {
      const answer = await callAny('GET /v1/admin/projects/{projectId}/monetization/definitions', { path })
      const { monetization } = answer.data as { monetization: { entitlements: readonly Row[] } }
      return monetization.entitlements.map((one) => String(one['key']))
    },
  })
  const known = [...new Set([...(data ?? []), ...held.map((one) => String(one['entitlement_id']))])]
  const hadIt = held.some((one) => one['entitlement_id'] === key)
  const userPath = { ...path, userId: user.id }
  const close = () => {
    setKey('')
    setDays('30')
    onClose()
  }
  return (
    <Confirm
      title={`Give an entitlement to ${nameOf(user)}`}
      verb="Give"
      isDangerous={false}
      isDisabled={key.trim() === ''}
      said={`${nameOf(user)} has ${key}.`}
      values={[key, days]}
      isOpen={isOpen}
      onClose={close}
      run={() =>
        call(grantUserEntitlement, {
          path: userPath,
          body: { entitlement_id: key.trim(), ...(days ? { duration_days: Number(days) } : {}), reason: 'support' },
        })
      }
      // taking it back would take an earlier gift too
      {...(hadIt
        ? {}
        : { undo: () => call(revokeUserEntitlement, { path: { ...userPath, entitlementId: key.trim() } }) })}
    >
      <Stack gap="sm">
        <Autocomplete
          label="Entitlement"
          description="Such as premium or no_ads"
          data={known}
          value={key}
          onChange={setKey}
          data-autofocus
        />
        <SegmentedControl aria-label="For how long" data={lengths} value={days} onChange={setDays} />
        <Text size="sm" c="dimmed">
          {hadIt ? 'A gift that is there is made longer, never shorter.' : 'It works at once, beside what was bought.'}
        </Text>
      </Stack>
    </Confirm>
  )
}

/** Gives a role. */
export const GiveRole = ({ user, isOpen, onClose }: DialogProps) => {
  const { path } = useProject()
  const [key, setKey] = useState<string | null>(null)
  const { data } = useQuery({
    queryKey: ['roles', path.projectId],
    queryFn: async () => (await call(listRoles, { path, query: { limit: 100 } })).data,
  })
  const roles = (data ?? []).filter((role) => !role.is_default)
  const role = roles.find((one) => one.key === key) ?? roles[0]
  const at = { ...path, idOrKey: role?.key ?? '' }
  const close = () => {
    setKey(null)
    onClose()
  }
  return (
    <Confirm
      title={`Give a role to ${nameOf(user)}`}
      verb="Give"
      isDangerous={false}
      isDisabled={!role}
      said={`${nameOf(user)} is ${role?.name ?? ''} now.`}
      values={key}
      isOpen={isOpen}
      onClose={close}
      run={() => call(createRoleAssignment, { path: at, body: { app_user_id: user.id } })}
      undo={() => call(deleteRoleAssignment, { path: { ...at, userId: user.id } })}
    >
      {data && roles.length === 0 ? (
        <None what="roles" to="roles" />
      ) : (
        <Select
          label="Role"
          description={role?.permissions.join(', ')}
          data={roles.map((one) => ({ value: one.key, label: one.name }))}
          value={role?.key ?? null}
          onChange={setKey}
          allowDeselect={false}
        />
      )}
    </Confirm>
  )
}
