import { Box, Button, Group, Stack, Text, TextInput } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Check, X } from 'lucide-react'
import { useState } from 'react'
import { adminEvaluateFlag } from '../../../sdk/src/generated/admin.ts'
import { call, callAny, type Row } from '../api.ts'
import { UserSelect } from '../collections/names.tsx'
import { Card, useAddress, useProject } from '../parts/page.tsx'
import { done, Failure, failed, useRefresh } from '../parts/states.tsx'
import { UserName } from '../parts/users.tsx'
import { type Flag, valueWords } from './data.tsx'
import { ValueInput } from './value_input.tsx'

const reasons: Readonly<Record<string, string>> = {
  off: 'because the flag is off',
  override: 'because it is set for this person',
  default: 'because no rule matches',
}
const conditions: Readonly<Record<string, string>> = {
  segment_id: 'is in the segment',
  filter: 'has the properties',
  percentage: 'is in the share',
  platforms: 'uses the platform',
  min_app_version: 'has the version',
  starts_at: 'it has begun',
  ends_at: 'it has not ended',
}

const overridesPath = 'PUT /v1/admin/projects/{projectId}/flags/{idOrKey}/overrides'

/** Values that are set for one person. An empty change answers all of them. */
const useOverrides = (flag: Flag) => {
  const { path } = useProject()
  const put = async (body: Row) =>
    (await callAny(overridesPath, { path: { ...path, idOrKey: flag.key }, body })).data as Row
  const list = useQuery({
    queryKey: ['overrides', path.projectId, flag.key],
    queryFn: () => put({}),
  })
  return { list, put }
}

const Trace = ({ flag, userId, attributes }: { flag: Flag; userId: string; attributes: Row }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const { put } = useOverrides(flag)
  const [value, setValue] = useState<unknown>(flag.value_type === 'boolean' ? true : flag.default_value)
  const { data, error, refetch } = useQuery({
    queryKey: ['evaluate', path.projectId, flag.key, flag.version, userId, attributes],
    queryFn: async () =>
      (
        await call(adminEvaluateFlag, {
          path: { ...path, idOrKey: flag.key },
          body: { user_id: userId, ...(Object.keys(attributes).length > 0 ? { attributes } : {}) },
        })
      ).data,
  })
  const set = useMutation({
    mutationFn: () => put({ [userId]: value }),
    onSuccess: async () => {
      done('It is set for this person.', () => put({ [userId]: null }).then(refresh))
      await refresh()
    },
    onError: failed,
  })
  if (error) return <Failure error={error} onRetry={refetch} />
  if (!data) return null
  const { reason, rule_index } = data
  const because = reasons[reason] ?? `because rule ${(rule_index ?? 0) + 1} matches`
  return (
    <Stack gap="md">
      <Text fz={17} aria-live="polite" className="links">
        <UserName id={userId} /> gets <strong>{valueWords(data.value)}</strong>, {because}.
      </Text>
      {data.trace.map((rule) => (
        <div key={rule.rule_index}>
          <Text size="sm" fw={500}>
            Rule {rule.rule_index + 1} {rule.holds ? 'matches' : 'does not match'}
          </Text>
          {Object.entries(rule.conditions).map(([name, holds]) => (
            <Group key={name} gap={6}>
              {holds ? (
                <Check size={15} color="var(--good)" aria-label="yes" />
              ) : (
                <X size={15} color="var(--bad)" aria-label="no" />
              )}
              <Text size="sm">{conditions[name] ?? name}</Text>
            </Group>
          ))}
        </div>
      ))}
      <Group align="flex-end" gap="xs">
        <ValueInput label="Set for this person alone" type={flag.value_type} value={value} onChange={setValue} />
        <Button variant="default" loading={set.isPending} onClick={() => set.mutate()}>
          Set
        </Button>
      </Group>
    </Stack>
  )
}

/** What one user gets, and why; and who has a value of their own. */
export const Seen = ({ flag }: { flag: Flag }) => {
  const [{ user, version, platform }, setAddress] = useAddress<'user' | 'version' | 'platform'>()
  const refresh = useRefresh()
  const { list, put } = useOverrides(flag)
  const attributes = {
    ...(version ? { app_version: version } : {}),
    ...(platform ? { platform } : {}),
  }
  const overrides = Object.entries(list.data ?? {})
  return (
    <Stack gap="md">
      <Card title="As one user">
        <div className="pair">
          <UserSelect
            label="User"
            placeholder="Name, mail or external id"
            value={user}
            onChange={(id) => setAddress({ user: id })}
          />
          <div className="pair">
            <TextInput
              label="App version"
              placeholder="as last used"
              value={version ?? ''}
              onChange={(event) => setAddress({ version: event.currentTarget.value || undefined })}
            />
            <TextInput
              label="Platform"
              placeholder="as last used"
              value={platform ?? ''}
              onChange={(event) => setAddress({ platform: event.currentTarget.value || undefined })}
            />
          </div>
        </div>
        <Box mt="md">
          {user ? (
            <Trace flag={flag} userId={user} attributes={attributes} />
          ) : (
            <Text size="sm" c="dimmed">
              Choose somebody to see what their app is told, and which rule decides.
            </Text>
          )}
        </Box>
      </Card>
      <Card title="Set for one person">
        {overrides.length === 0 && (
          <Text size="sm" c="dimmed">
            Nobody has a value of their own. Choose a user above to set one: for a tester, or a customer who waits for
            it.
          </Text>
        )}
        <Stack gap={6} className="links">
          {overrides.map(([id, value]) => (
            <Group key={id} justify="space-between">
              <UserName id={id} />
              <Group gap="xs">
                <Text size="sm">{valueWords(value)}</Text>
                <Button
                  size="compact-xs"
                  variant="default"
                  onClick={() =>
                    put({ [id]: null }).then(async () => {
                      done('The rules decide again.', () => put({ [id]: value }).then(refresh))
                      await refresh()
                    }, failed)
                  }
                >
                  Take away
                </Button>
              </Group>
            </Group>
          ))}
        </Stack>
      </Card>
    </Stack>
  )
}
