import { Group, Radio, Select, Stack, Text } from '@mantine/core'
import { policySentence, useRoles } from './data.ts'

type Preset = { readonly policy: string; readonly title: string; readonly help: string }
const preset = (policy: string, title: string, help: string): Preset => ({ policy, title, help })

const presets: Readonly<Record<'read' | 'write', Readonly<Record<string, readonly Preset[]>>>> = {
  read: {
    user: [
      preset('owner', 'Its owner', 'Private: notes, drafts, progress'),
      preset('public', 'Everyone who is signed in', 'Shared: posts, songs, a catalog'),
      preset('role', 'A role', 'Moderators or teachers see every row'),
    ],
    group: [
      preset('member', 'Members of its group', 'A team sees what is the team’s'),
      preset('owner', 'Who wrote it', 'Private, within a group'),
      preset('public', 'Everyone who is signed in', 'Groups show it to everybody'),
      preset('role', 'A role', 'Members with a role of yours'),
    ],
  },
  write: {
    user: [
      preset('owner', 'Its owner', 'Each user changes their own rows'),
      preset('authenticated', 'Everyone who is signed in', 'A board that all edit'),
      preset('role', 'A role', 'Holders change every row'),
    ],
    group: [
      preset('owner', 'Who wrote it', 'Members change their own rows'),
      preset('member', 'Members from a rank on', 'Say, admins change every row of the group'),
      preset('role', 'A role', 'Members with a role of yours'),
    ],
  },
}
const ranks = ['owner', 'admin', 'member', 'viewer']

/** Who reads or changes rows: presets as cards, with the role or the rank where one is meant. */
export const PolicyChoice = ({
  verb,
  scope,
  policy,
  onChange,
}: {
  verb: 'read' | 'write'
  scope: 'user' | 'group'
  policy: string
  onChange: (policy: string) => void
}) => {
  const { data: roles } = useRoles()
  const [kind = '', about] = policy.split(':')
  const firstRole = roles?.[0]?.key ?? 'moderator'
  const policyOf = (next: string) =>
    next === 'role' ? `role:${firstRole}` : next === 'member' && verb === 'write' ? 'member:admin' : next
  return (
    <Radio.Group
      label={verb === 'read' ? 'Who reads a row' : 'Who changes a row'}
      description={policySentence(verb, policy, scope)}
      value={kind}
      onChange={(next) => onChange(policyOf(next))}
    >
      <Stack gap={6} mt={8}>
        {(presets[verb][scope] ?? []).map(({ policy: own, title, help }) => (
          <Radio.Card
            key={own}
            value={own}
            className="choice"
            aria-label={title}
            disabled={own === 'role' && roles?.length === 0}
          >
            <Group wrap="nowrap" gap="sm" align="flex-start">
              <Radio.Indicator mt={2} />
              <div>
                <Text size="sm" fw={500}>
                  {title}
                </Text>
                <Text size="xs" c="dimmed">
                  {own === 'role' && roles?.length === 0 ? 'There are no roles yet: add one under Users, Roles' : help}
                </Text>
              </div>
            </Group>
          </Radio.Card>
        ))}
        {kind === 'role' && (
          <Select
            label="Role"
            allowDeselect={false}
            data={(roles ?? []).map(({ key, name }) => ({ value: key, label: name }))}
            value={about ?? null}
            onChange={(role) => onChange(`role:${role}`)}
          />
        )}
        {kind === 'member' && (
          <Select
            label="From this rank on"
            allowDeselect={false}
            data={(verb === 'read' ? ranks : ranks.slice(0, 3)).map((rank) => ({ value: rank, label: rank }))}
            value={about ?? 'viewer'}
            onChange={(rank) => onChange(verb === 'read' && rank === 'viewer' ? 'member' : `member:${rank}`)}
          />
        )}
      </Stack>
    </Radio.Group>
  )
}
