import { Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { adminGetUser } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { useChoices } from '../parts/form/references.ts'
import { useProject } from '../parts/page.tsx'
import { nameOf } from '../parts/users.tsx'

/** The name of a user, asked for once in five minutes. */
export const useUserName = (id: string | undefined, isAsked = true): string | undefined => {
  const { path } = useProject()
  const { data, error } = useQuery({
    queryKey: ['user name', path.projectId, id],
    enabled: isAsked && id !== undefined && id !== '',
    staleTime: 300_000,
    queryFn: async () => {
      const { data: user } = await call(adminGetUser, { path: { ...path, userId: id ?? '' } })
      return { display_name: user.display_name, email: user.email }
    },
  })
  return data ? nameOf(data) : error ? 'Deleted user' : undefined
}

/** The name alone, where a link would be in the way. */
export const UserName = ({ id, isAsked = true }: { id: string; isAsked?: boolean }) => (
  <>{useUserName(id, isAsked) ?? '…'}</>
)

/** Chooses a user by name, mail or external id. */
export const UserSelect = ({
  label,
  value,
  onChange,
  ...rest
}: {
  label: string
  value: string | undefined
  onChange: (id: string | undefined) => void
  placeholder?: string
  description?: string
  error?: string | undefined
  required?: boolean
  isBare?: boolean
  size?: 'xs' | 'sm'
  w?: number | string
}) => {
  const [text, setText] = useState('')
  const name = useUserName(value)
  const found = useChoices('app_user_id', text === name ? '' : text, undefined)
  const { isBare = false, ...props } = rest
  const choices = (found?.choices ?? []).map((choice) => ({ ...choice }))
  if (value && !choices.some((choice) => choice.value === value)) choices.push({ value, label: name ?? '…' })
  return (
    <Select
      {...props}
      {...(isBare ? { 'aria-label': label, placeholder: rest.placeholder ?? label } : { label })}
      searchable
      clearable
      clearButtonProps={{ 'aria-label': 'Clear' }}
      data={choices}
      value={value ?? null}
      onChange={(next) => onChange(next ?? undefined)}
      onSearchChange={setText}
      filter={({ options }) => options}
      nothingFoundMessage={found?.isFetching ? 'Searching…' : 'Nobody of that name'}
    />
  )
}
