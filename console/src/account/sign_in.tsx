import {
  Alert,
  Anchor,
  Button,
  Divider,
  Group,
  Paper,
  PasswordInput,
  Stack,
  Text,
  TextInput,
  Title,
} from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Sprout } from 'lucide-react'
import { type FormEvent, useEffect, useState } from 'react'
import { callAsVisitor, signIn } from '../api.ts'
import { Failure } from '../parts/states.tsx'

type Way = 'login' | 'signup' | 'code'
const stateKey = 'trellis-console-github'

/** The page says whether its server has a GitHub application. */
const hasGithub = () => document.getElementById('console')?.dataset['github'] === 'true'

const beginGithub = async () => {
  const query = { redirect_uri: `${location.origin}/console/github` }
  const { data } = await callAsVisitor('GET /v1/auth/developer/github/start', { query })
  const { authorize_url, state } = data as { authorize_url: string; state: string }
  sessionStorage.setItem(stateKey, state)
  location.assign(authorize_url)
}

/** The page that GitHub returns to: the state must be the one that this tab was given. */
const finishGithub = async ({ code, state }: { code?: string; state?: string }) => {
  const begun = sessionStorage.getItem(stateKey)
  sessionStorage.removeItem(stateKey)
  if (!code || !state || state !== begun) throw new Error('This is not the sign-in that this tab began. Begin again.')
  await signIn('github', { code, state })
}

const titles: Readonly<Record<Way, string>> = {
  login: 'Sign in',
  signup: 'Create an account',
  code: 'Sign in with a code',
}

/** Sign-in of a developer: by password, by a code in a mail, by GitHub; or a new account. */
export const Page = () => {
  const { to, ended, code, state } = useSearch({ strict: false }) as Partial<
    Record<'to' | 'ended' | 'code' | 'state', string>
  >
  const go = useNavigate()
  const [way, setWay] = useState<Way>('login')
  const [codeFor, setCodeFor] = useState<string>()
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const onward = () => go({ to: (to?.startsWith('/') ? to : '/') as never })
  const attempt = async (work: () => Promise<unknown>) => {
    setBusy(true)
    setError(undefined)
    try {
      await work()
    } catch (reason) {
      setError(reason)
    }
    setBusy(false)
  }
  useEffect(() => {
    document.title = 'Sign in · Trellis'
    if (location.pathname === '/console/github')
      void attempt(async () => {
        await finishGithub({ ...(code ? { code } : {}), ...(state ? { state } : {}) })
        await onward()
      })
  }, [])
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const entries = [...new FormData(event.currentTarget)].filter(([, value]) => value !== '')
    const body = Object.fromEntries(entries)
    void attempt(async () => {
      if (way === 'code' && codeFor === undefined) {
        await callAsVisitor('POST /v1/auth/developer/otp/request', { body })
        setCodeFor(String(body['email']))
        return
      }
      await signIn(way, way === 'code' ? { ...body, email: codeFor } : body)
      await onward()
    })
  }
  const turn = (next: Way) => {
    setWay(next)
    setCodeFor(undefined)
    setError(undefined)
  }
  return (
    <main className="sign-in" id="content">
      <Paper withBorder p={28} radius="lg" w={400} maw="100%">
        <Group gap={8} mb="md">
          <Sprout size={24} color="var(--mantine-primary-color-filled)" aria-hidden />
          <Text fw={700} size="lg">
            Trellis
          </Text>
          <Text size="sm" c="dimmed" ml="auto" truncate maw={190}>
            {location.host}
          </Text>
        </Group>
        <Title order={1} id="title" tabIndex={-1} className="title">
          {titles[way]}
        </Title>
        {ended && (
          <Alert color="yellow" mt="sm" role="status">
            Your session has ended: sign in again.
          </Alert>
        )}
        <form onSubmit={send} aria-label={titles[way]}>
          <Stack gap="sm" mt="md">
            {error !== undefined && <Failure error={error} />}
            {codeFor === undefined ? (
              <TextInput
                name="email"
                type="email"
                label="Email"
                autoComplete="username"
                required
                withAsterisk={false}
                autoFocus
              />
            ) : (
              <Text size="sm">A code is on its way to {codeFor}.</Text>
            )}
            {way !== 'code' && (
              <PasswordInput
                name="password"
                label="Password"
                autoComplete={way === 'signup' ? 'new-password' : 'current-password'}
                required
                withAsterisk={false}
                visibilityToggleButtonProps={{ 'aria-label': 'Show the characters' }}
              />
            )}
            {codeFor !== undefined && (
              <TextInput
                name="code"
                label="Code"
                autoComplete="one-time-code"
                inputMode="numeric"
                required
                withAsterisk={false}
                autoFocus
              />
            )}
            {way === 'signup' && (
              <>
                <TextInput name="name" label="Name" autoComplete="name" maxLength={200} />
                <TextInput
                  name="invite_code"
                  label="Invite code"
                  description="Where somebody invited you"
                  autoComplete="off"
                />
              </>
            )}
            <Button type="submit" loading={isBusy} fullWidth mt={4}>
              {way === 'code' && codeFor === undefined
                ? 'Send a code'
                : way === 'signup'
                  ? 'Create an account'
                  : 'Sign in'}
            </Button>
          </Stack>
        </form>
        <Divider my="md" label="or" />
        <Stack gap={8} align="center">
          {hasGithub() && (
            <Button variant="default" fullWidth onClick={() => attempt(beginGithub)}>
              Sign in with GitHub
            </Button>
          )}
          {(['login', 'code', 'signup'] as const)
            .filter((other) => other !== way)
            .map((other) => (
              <Anchor key={other} component="button" type="button" size="sm" onClick={() => turn(other)}>
                {other === 'login' ? 'Sign in with a password' : titles[other]}
              </Anchor>
            ))}
        </Stack>
      </Paper>
    </main>
  )
}
