import { PasswordInput, Stack, Switch, Text, Textarea, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { putOauthProvider } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { FormFoot } from '../parts/form_foot.tsx'
import { useProject } from '../parts/page.tsx'
import { done, useRefresh } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { known, type Provider, titleOf } from './data.ts'

const wordsIn = (text: string) => text.split(/[\s,]+/).filter(Boolean)
const sent = (name: string, value: string) => (value.trim() === '' ? {} : { [name]: value.trim() })

/** What a provider asks for; one that is here keeps its secret where none is entered. */
export const ProviderForm = ({
  name,
  row,
  onClose,
}: {
  name: string
  row: Provider | undefined
  onClose: () => void
}) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const isOwn = name === '' || known[name] === undefined
  const [values, setValues] = useState({
    name,
    issuer: row?.issuer ?? '',
    client_id: row?.client_id ?? '',
    client_secret: '',
    team_id: row?.team_id ?? '',
    signing_key_id: row?.signing_key_id ?? '',
    scopes: (row?.scopes ?? []).join(' '),
    is_active: row?.is_active ?? true,
  })
  const work = useMutation({
    mutationFn: () =>
      call(putOauthProvider, {
        path: { ...path, name: values.name.trim() },
        body: {
          client_id: values.client_id.trim(),
          scopes: wordsIn(values.scopes),
          is_active: values.is_active,
          ...(isOwn ? sent('issuer', values.issuer) : {}),
          ...sent('client_secret', values.client_secret),
          ...(name === 'apple'
            ? { ...sent('team_id', values.team_id), ...sent('signing_key_id', values.signing_key_id) }
            : {}),
        },
      }),
    onSuccess: async () => {
      done(`${titleOf(values.name.trim())} is set. Test it now.`)
      onClose()
      await refresh()
    },
  })
  useUnsaved(values, work)
  const field = (key: Exclude<keyof typeof values, 'is_active'>) => ({
    autoComplete: 'off',
    value: values[key],
    onChange: (event: { currentTarget: { value: string } }) =>
      setValues({ ...values, [key]: event.currentTarget.value }),
  })
  const secret = row?.has_secret
    ? 'Leave it empty to keep the one that is there'
    : 'It is encrypted, and never shown again'
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        work.mutate()
      }}
    >
      <Stack>
        {name === '' && (
          <TextInput label="Name" description="What apps ask for, such as acme. It stays" required {...field('name')} />
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
          <Textarea
            label="Key, the text of the .p8 file"
            description={secret}
            rows={6}
            className="mono"
            {...field('client_secret')}
          />
        ) : (
          <PasswordInput label="Client secret" description={secret} {...field('client_secret')} />
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
