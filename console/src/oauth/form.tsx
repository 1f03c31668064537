import { Checkbox, PasswordInput, Stack, Switch, Text, Textarea, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { putOauthProvider } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { FormFoot } from '../parts/form_foot.tsx'
import { useProject } from '../parts/page.tsx'
import { done, useRefresh } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { isKnown, type Provider, titleOf } from './data.ts'

const wordsIn = (text: string) => text.split(/[\s,]+/).filter(Boolean)
const sent = (name: string, value: string) => (value.trim() === '' ? {} : { [name]: value.trim() })

type Values = { readonly issuer: string; readonly team_id: string }

/** What becomes of the secret where none is entered: the server forgets one that was entered for another issuer, and a key for another use. */
const aboutSecret = (row: Provider | undefined, { issuer, team_id }: Values): string => {
  if (!row?.has_secret) return 'It is encrypted, and never shown again'
  if (issuer.trim() !== (row.issuer ?? '')) return 'The one that is there was for the other issuer: enter the new one'
  if ((team_id.trim() === '') !== (row.team_id === null))
    return 'What is there was for a sign-in without a team id, or with one: enter it anew'
  return 'Leave it empty to keep the one that is there'
}

/** What a provider asks for; one that is here keeps its secret where none is entered. The name of a new one is empty. */
export const ProviderForm = ({
  name,
  rows,
  onClose,
}: {
  name: string
  rows: readonly Provider[]
  onClose: () => void
}) => {
  const row = rows.find((one) => one.name === name)
  const { path } = useProject()
  const refresh = useRefresh()
  const isOwn = !isKnown(name)
  const [values, setValues] = useState({
    name,
    issuer: row?.issuer ?? '',
    client_id: row?.client_id ?? '',
    client_secret: '',
    team_id: row?.team_id ?? '',
    signing_key_id: row?.signing_key_id ?? '',
    scopes: (row?.scopes ?? []).join(' '),
    is_active: row?.is_active ?? true,
    isSecretRemoved: false,
  })
  const chosen = values.name.trim()
  const isTaken = name === '' && (isKnown(chosen) || rows.some((one) => one.name === chosen))
  const work = useMutation({
    mutationFn: () =>
      call(putOauthProvider, {
        path: { ...path, name: chosen },
        body: {
          client_id: values.client_id.trim(),
          scopes: wordsIn(values.scopes),
          is_active: values.is_active,
          ...(isOwn ? sent('issuer', values.issuer) : {}),
          ...(values.isSecretRemoved ? { client_secret: null } : sent('client_secret', values.client_secret)),
          ...(name === 'apple'
            ? { ...sent('team_id', values.team_id), ...sent('signing_key_id', values.signing_key_id) }
            : {}),
        },
      }),
    onSuccess: async () => {
      done(`${titleOf(chosen)} is set. Test it now.`)
      onClose()
      await refresh()
    },
  })
  useUnsaved(values, work)
  const field = (key: Exclude<keyof typeof values, 'is_active' | 'isSecretRemoved'>) => ({
    autoComplete: 'off',
    value: values[key],
    onChange: (event: { currentTarget: { value: string } }) =>
      setValues({ ...values, [key]: event.currentTarget.value }),
  })
  const secret = { description: aboutSecret(row, values), disabled: values.isSecretRemoved, ...field('client_secret') }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (!isTaken) work.mutate()
      }}
    >
      <Stack>
        {name === '' && (
          <TextInput
            label="Name"
            description="What apps ask for, such as acme. It stays"
            required
            error={isTaken && `${titleOf(chosen)} has a tile of its own: close this, and change it there`}
            {...field('name')}
          />
        )}
        {isOwn && (
          <TextInput
            label="Issuer"
            description="As the provider writes it, such as https://login.example.com"
            required
            {...field('issuer')}
          />
        )}
        <TextInput label={name === 'apple' ? 'Services ID' : 'Client id'} required {...field('client_id')} />
        {name === 'apple' && (
          <>
            <TextInput label="Team id" {...field('team_id')} />
            <TextInput label="Key id" {...field('signing_key_id')} />
          </>
        )}
        {name === 'apple' ? (
          <Textarea label="Key, the text of the .p8 file" rows={6} className="mono" {...secret} />
        ) : (
          <PasswordInput label="Client secret" {...secret} />
        )}
        {row?.has_secret && (
          <Checkbox
            label="Remove the one that is there"
            checked={values.isSecretRemoved}
            onChange={(event) => setValues({ ...values, isSecretRemoved: event.currentTarget.checked })}
          />
        )}
        <TextInput label="Further scopes" description="Beside those that a sign-in needs" {...field('scopes')} />
        <Switch
          label="Users may sign in with it"
          checked={values.is_active}
          onChange={(event) => setValues({ ...values, is_active: event.currentTarget.checked })}
        />
        <Text size="sm" c="dimmed">
          The provider must know the callback address of this project.
        </Text>
        <FormFoot verb="Save" work={work} onCancel={onClose} />
      </Stack>
    </form>
  )
}
