import { Select } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { type QueryClient, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { adminGetUser, listUsers } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { ProjectLink, useAddress, useProject } from './page.tsx'

type Named = { readonly display_name?: string | null; readonly email?: string | null }

/** What a person is called: the name, else the mail. */
export const nameOf = (user: Named | null | undefined): string => user?.display_name || user?.email || 'Anonymous user'

/** Those who were active last, of whom most rows speak: read once for a page of rows, rather than one by one. */
const recent = (client: QueryClient, projectId: string) =>
  client.fetchQuery({
    queryKey: ['recent users', projectId],
    staleTime: 60_000,
    queryFn: async () => {
      const { data } = await call(listUsers, { path: { projectId }, query: { limit: 100 } })
      return new Map(data.map(({ id, display_name, email }) => [id, { display_name, email }]))
    },
  })

/** The name of a user of whom only the identifier is known: asked for once for all places that show it. */
const useUserName = (id: string | null | undefined, isAsked = true): string | undefined => {
  const { path } = useProject()
  const client = useQueryClient()
  const { data, error } = useQuery({
    queryKey: ['user name', path.projectId, id],
    enabled: isAsked && Boolean(id),
    staleTime: 300_000,
    queryFn: async () => {
      const seen = (await recent(client, path.projectId)).get(id ?? '')
      if (seen) return seen
      const { data: found } = await call(adminGetUser, { path: { ...path, userId: id ?? '' } })
      return { display_name: found.display_name, email: found.email }
    },
  })
  return data ? nameOf(data) : error ? 'Deleted user' : undefined
}

/** The name of a user as a link to the page about the user. */
export const UserName = ({ id, user }: { id: string | null | undefined; user?: Named | null | undefined }) => {
  const isKnown = Boolean(user?.display_name ?? user?.email)
  const found = useUserName(id, !isKnown)
  if (!id) return <>—</>
  return <ProjectLink to={`users/${id}`}>{isKnown ? nameOf(user) : (found ?? '…')}</ProjectLink>
}

/** A choice of a user, by name, mail or external id. Without a label above, the placeholder says what is chosen. */
export const UserSelect = ({
  value,
  onChange,
  label,
  placeholder = 'Name, mail or external id',
}: {
  value: string | undefined
  onChange: (id: string | undefined) => void
  label?: string
  placeholder?: string
}) => {
  const { path } = useProject()
  const [text, setText] = useState('')
  const [settled] = useDebouncedValue(text, 200)
  const { data } = useQuery({
    queryKey: ['choose user', path.projectId, settled],
    queryFn: () => call(listUsers, { path, query: { limit: 20, ...(settled ? { search: settled } : {}) } }),
    placeholderData: (before) => before,
  })
  const chosen = useUserName(value)
  const choices = (data?.data ?? []).map((user) => ({ value: user.id, label: user.email ?? nameOf(user) }))
  // who was chosen before may not be among those who were found now
  if (value && !choices.some((choice) => choice.value === value)) choices.push({ value, label: chosen ?? '…' })
  return (
    <Select
      {...(label ? { label, required: true } : { 'aria-label': placeholder })}
      placeholder={placeholder}
      searchable
      clearable
      clearButtonProps={{ 'aria-label': 'Clear the user' }}
      data={choices}
      filter={({ options }) => options}
      onSearchChange={setText}
      value={value ?? null}
      onChange={(next) => onChange(next ?? undefined)}
      nothingFoundMessage="Nobody of that name"
      maxDropdownHeight={260}
    />
  )
}

/** A choice of a user in a form. */
export const UserPicker = ({
  label = 'User',
  ...rest
}: {
  value: string | undefined
  onChange: (id: string | undefined) => void
  label?: string
}) => <UserSelect label={label} {...rest} />

/** Narrows a list to one user, who stands in the address as `user`. */
export const UserFilter = ({ placeholder = 'All users' }: { placeholder?: string }) => {
  const [{ user }, setAddress] = useAddress<'user'>()
  return <UserSelect placeholder={placeholder} value={user} onChange={(next) => setAddress({ user: next })} />
}
