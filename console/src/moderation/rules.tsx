import {
  Alert,
  Button,
  Group,
  MultiSelect,
  NumberInput,
  SegmentedControl,
  Select,
  Skeleton,
  Stack,
  Switch,
  TagsInput,
  Text,
  Textarea,
  TextInput,
} from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useMutation, useQuery } from '@tanstack/react-query'
import { FlaskConical, Plus, ShieldAlert } from 'lucide-react'
import { useState } from 'react'
import {
  createModerationRule,
  deleteModerationRule,
  listModerationRules,
  simulateModerationRule,
  testModerationRule,
  updateModerationRule,
} from '../../../sdk/src/generated/admin.ts'
import type { ModerationRule } from '../../../sdk/src/generated/schemas.ts'
import { call, type Row, TrellisError } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { List as Rows } from '../parts/list.tsx'
import { Card, PageHead, ProjectLink, useOpen, useParam, useProject } from '../parts/page.tsx'
import { count, counted, done, Empty, Failure, failed, sentenceOf, useRefresh, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'

type Type = 'keyword' | 'link' | 'regex' | 'rate' | 'new_account' | 'report_threshold'
const types: Readonly<Record<Type, readonly [string, string, Row]>> = {
  keyword: ['Words', 'Catches words and phrases, however they are written', { words: [], match: 'word' }],
  link: ['Links', 'Catches links to other sites', { allow_domains: [] }],
  regex: ['Pattern', 'Catches what a regular expression matches', { pattern: '' }],
  rate: ['Too much', 'Catches what one user writes beyond a number', { max: 10, window_seconds: 60 }],
  new_account: ['New accounts', 'Catches what users write who joined lately', { max_age_hours: 24 }],
  report_threshold: ['Many reports', 'Hides what several users reported', { count: 3, window_hours: 24 }],
}
const places = [
  ['message', 'Messages'],
  ['display_name', 'Names of users'],
  ['group_name', 'Names of groups'],
  ['feed_entry', 'Feed entries'],
  ['collection_row', 'Rows of collections'],
  ['review', 'Reviews'],
  ['content', 'Content'],
  ['ai_input', 'What is asked of AI'],
  ['ai_output', 'What AI answers'],
] as const
const subjects = [
  ['user', 'Users'],
  ['message', 'Messages'],
  ['media', 'Files'],
  ['group', 'Groups'],
  ['feed_entry', 'Feed entries'],
  ['collection_row', 'Rows of collections'],
  ['review', 'Reviews'],
  ['content', 'Content'],
] as const
const actionWords: Readonly<Record<string, string>> = {
  queue: 'Ask a moderator',
  hide: 'Hide until then',
  block: 'Refuse it',
}
const placeWords = new Map<string, string>([...subjects, ...places])

/** What a rule does, in a sentence. */
export const ruleInWords = ({ rule_type, config }: Pick<ModerationRule, 'rule_type' | 'config'>): string => {
  const row = config as Row
  const words = (row['words'] as readonly string[] | undefined) ?? []
  switch (rule_type as Type) {
    case 'keyword':
      return `${words.slice(0, 4).join(', ')}${words.length > 4 ? ` and ${words.length - 4} more` : ''}`
    case 'link':
      return `links, except to ${((row['allow_domains'] as readonly string[]) ?? []).join(', ') || 'nowhere'}`
    case 'regex':
      return `the pattern ${row['pattern']}`
    case 'rate':
      return `more than ${row['max']} in ${row['window_seconds']} seconds`
    case 'new_account':
      return `accounts younger than ${row['max_age_hours']} hours`
    case 'report_threshold':
      return `${row['count']} reports in ${row['window_hours']} hours`
  }
}

const Config = ({ type, config, set }: { type: Type; config: Row; set: (next: Row) => void }) => {
  const change = (name: string) => (value: unknown) => set({ ...config, [name]: value })
  const number = (name: string, label: string, help?: string) => (
    <NumberInput
      label={label}
      description={help}
      min={1}
      value={(config[name] as number | undefined) ?? ''}
      onChange={change(name)}
    />
  )
  if (type === 'keyword')
    return (
      <>
        <TagsInput
          label="Words and phrases"
          description="Upper and lower case, invisible signs and punctuation between words make no difference"
          placeholder="Type one, press Enter"
          splitChars={[',', '\n']}
          value={(config['words'] as string[]) ?? []}
          onChange={change('words')}
        />
        <SegmentedControl
          aria-label="Match"
          data={[
            { value: 'word', label: 'Whole words' },
            { value: 'substring', label: 'Parts of words too' },
          ]}
          value={String(config['match'] ?? 'word')}
          onChange={change('match')}
        />
      </>
    )
  if (type === 'link')
    return (
      <TagsInput
        label="Sites that may be linked"
        description="With what is below them. All others are caught"
        placeholder="example.com"
        value={(config['allow_domains'] as string[]) ?? []}
        onChange={change('allow_domains')}
      />
    )
  if (type === 'regex')
    return (
      <TextInput
        label="Pattern"
        description="Syntax of RE2; (?i) at its beginning for any case"
        value={String(config['pattern'] ?? '')}
        onChange={(event) => change('pattern')(event.currentTarget.value)}
        ff="monospace"
      />
    )
  if (type === 'rate')
    return (
      <div className="pair">
        {number('max', 'At most', 'Texts of one user')}
        {number('window_seconds', 'In so many seconds', 'From the first one')}
      </div>
    )
  if (type === 'new_account') return number('max_age_hours', 'Hours since they joined')
  return (
    <div className="pair">
      {number('count', 'Reports', 'Of different users')}
      {number('window_hours', 'Within hours')}
    </div>
  )
}

const RuleForm = ({ rule }: { rule?: ModerationRule }) => {
  const { path } = useProject()
  const open = useOpen()
  const refresh = useRefresh()
  const [name, setName] = useState(rule?.name ?? '')
  const [type, setType] = useState<Type>((rule?.rule_type as Type | undefined) ?? 'keyword')
  const [config, setConfig] = useState<Row>((rule?.config as Row | undefined) ?? types.keyword[2])
  const isByReports = type === 'report_threshold'
  const action = String(config['action'] ?? (isByReports ? 'hide' : 'queue'))
  const applies = (config['applies_to'] as string[] | undefined) ?? []
  const work = useMutation({
    mutationFn: () => {
      const { applies_to: _, ...rest } = config
      const whole = { ...rest, action, ...(applies.length > 0 ? { applies_to: applies } : {}) }
      const body = { name, rule_type: type, config: whole }
      return rule
        ? call(updateModerationRule, { path: { ...path, ruleId: rule.id }, body })
        : call(createModerationRule, { path, body })
    },
    onSuccess: async ({ data }) => {
      done(rule ? 'Saved.' : `“${data.name}” watches from now on.`)
      await refresh()
      void open(`moderation-rules/${data.id}`)
    },
  })
  useUnsaved([name, type, config], work)
  const field = work.error instanceof TrellisError ? String(work.error.details?.['field'] ?? '') : ''
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        work.mutate()
      }}
    >
      <Stack gap="md">
        <TextInput
          label="Name"
          description="What your team calls it"
          required
          value={name}
          error={field === 'name' ? sentenceOf(work.error) : undefined}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <Select
          label="What it catches"
          description={types[type][1]}
          data={Object.entries(types).map(([value, [label]]) => ({ value, label }))}
          value={type}
          allowDeselect={false}
          onChange={(next) => {
            const chosen = (next ?? 'keyword') as Type
            setType(chosen)
            setConfig(types[chosen][2])
          }}
        />
        <Config type={type} config={config} set={setConfig} />
        {field.startsWith('config') && (
          <Text size="sm" c="var(--bad)" role="alert">
            {sentenceOf(work.error)}
          </Text>
        )}
        <MultiSelect
          label="Where"
          description="Everywhere if nothing is chosen"
          placeholder={applies.length === 0 ? 'Everywhere' : ''}
          data={(isByReports ? subjects : places).map(([value, label]) => ({ value, label }))}
          value={applies}
          onChange={(next) => setConfig({ ...config, applies_to: next })}
          clearable
        />
        <div>
          <Text size="sm" fw={600} mb={4} id="what-happens">
            What happens
          </Text>
          <div className="scroll-x">
            <SegmentedControl
              aria-labelledby="what-happens"
              data={(isByReports ? ['queue', 'hide'] : ['queue', 'hide', 'block']).map((value) => ({
                value,
                label: actionWords[value] ?? value,
              }))}
              value={action}
              onChange={(next) => setConfig({ ...config, action: next })}
            />
          </div>
        </div>
        {work.error && !field.startsWith('config') && field !== 'name' && <Failure error={work.error} />}
        <Group justify="flex-end" gap="xs">
          {!rule && (
            <Button variant="default" onClick={() => open('moderation-rules')}>
              Cancel
            </Button>
          )}
          <Button type="submit" loading={work.isPending} disabled={name.trim() === ''}>
            {rule ? 'Save' : 'Create rule'}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}

/** A text against the stored rule, while one types; and the texts of the last days. */
const Try = ({ rule }: { rule: ModerationRule }) => {
  const { path } = useProject()
  const at = { ...path, ruleId: rule.id }
  const [text, setText] = useState('')
  const [settled] = useDebouncedValue(text, 300)
  const [days, setDays] = useState('7')
  const test = useQuery({
    queryKey: ['rule test', rule.id, rule.updated_at, settled],
    enabled: settled.trim() !== '',
    retry: false,
    queryFn: async () => (await call(testModerationRule, { path: at, body: { text: settled } })).data,
  })
  const simulate = useMutation({
    mutationFn: async () => (await call(simulateModerationRule, { path: at, body: { days: Number(days) } })).data,
  })
  const isText = ['keyword', 'regex', 'link'].includes(rule.rule_type)
  return (
    <div className="column">
      {isText && (
        <Card title="Try a text">
          <Stack gap="sm">
            <Textarea
              aria-label="Text"
              placeholder="My casino is the best"
              rows={3}
              value={text}
              onChange={(event) => setText(event.currentTarget.value)}
            />
            <div role="status">
              {test.error && <Failure error={test.error} />}
              {text.trim() !== '' && test.data && (
                <Group gap={8}>
                  <Status
                    value={test.data.matches ? 'caught' : 'let through'}
                    meaning={test.data.matches ? 'bad' : 'good'}
                  />
                  <Text size="sm" c="dimmed">
                    {test.data.matches &&
                      `${test.data.found.join(', ')}: ${actionWords[test.data.action]?.toLowerCase()}`}
                  </Text>
                </Group>
              )}
            </div>
          </Stack>
        </Card>
      )}
      {isText && (
        <Card title="What it would have caught">
          <Stack gap="sm">
            <Group gap="xs">
              <SegmentedControl
                size="xs"
                aria-label="Days"
                data={[
                  { value: '1', label: 'A day' },
                  { value: '7', label: '7 days' },
                  { value: '30', label: '30 days' },
                ]}
                value={days}
                onChange={setDays}
              />
              <Button
                size="xs"
                variant="default"
                leftSection={<FlaskConical size={14} />}
                loading={simulate.isPending}
                onClick={() => simulate.mutate()}
              >
                Simulate
              </Button>
            </Group>
            {simulate.error && <Failure error={simulate.error} />}
            {simulate.data && (
              <Text size="sm" role="status">
                <b>{counted(simulate.data.caught, 'text')}</b> of {count(simulate.data.checked)} in{' '}
                {counted(simulate.data.days, 'day')}
                {!simulate.data.is_complete && ', of the newest alone: there are more than can be read at once'}.{' '}
                {Object.entries(simulate.data.by_kind as Row)
                  .filter(([, value]) => typeof value === 'number')
                  .map(([kind, value]) => `${placeWords.get(kind) ?? kind}: ${value}`)
                  .join(', ')}
              </Text>
            )}
          </Stack>
        </Card>
      )}
      {!isText && (
        <Alert color="gray">This rule looks at who writes and how often, not at a text: there is nothing to try.</Alert>
      )}
    </div>
  )
}

const useRules = () => {
  const { path } = useProject()
  return useQuery({
    queryKey: ['moderation rules', path.projectId],
    queryFn: () => call(listModerationRules, { path, query: { limit: 50 } }),
  })
}

const RuleSwitch = ({ rule }: { rule: ModerationRule }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [isOn, setOn] = useState(rule.is_active)
  return (
    <Switch
      aria-label={`${rule.name} is on`}
      checked={isOn}
      onChange={async (event) => {
        const next = event.currentTarget.checked
        setOn(next)
        try {
          await call(updateModerationRule, { path: { ...path, ruleId: rule.id }, body: { is_active: next } })
          done(next ? `“${rule.name}” watches again.` : `“${rule.name}” is off.`)
          await refresh()
        } catch (error) {
          setOn(!next)
          failed(error)
        }
      }}
    />
  )
}

export const List = () => {
  const open = useOpen()
  const make = (
    <Button leftSection={<Plus size={16} />} onClick={() => open('moderation-rules/new')}>
      New rule
    </Button>
  )
  return (
    <>
      <PageHead title="Moderation rules" about="They read what users write, before others do" actions={make} />
      <Rows<ModerationRule>
        name="Rules"
        operation="GET /v1/admin/projects/{projectId}/moderation/rules"
        to={({ id }) => `moderation-rules/${id}`}
        columns={[
          {
            title: 'Rule',
            show: (rule) => (
              <>
                <ProjectLink to={`moderation-rules/${rule.id}`}>{rule.name}</ProjectLink>
                <span className="cell-sub">
                  {types[rule.rule_type as Type][0]}: {ruleInWords(rule)}
                </span>
              </>
            ),
          },
          {
            title: 'Where',
            show: (rule) =>
              ((rule.config as Row)['applies_to'] as readonly string[] | undefined)
                ?.map((place) => placeWords.get(place) ?? place)
                .join(', ') ?? 'everywhere',
          },
          {
            title: 'What happens',
            show: (rule) => actionWords[String((rule.config as Row)['action'] ?? 'queue')] ?? '—',
          },
          { title: 'Changed', show: (rule) => <When at={rule.updated_at} /> },
          { title: 'On', show: (rule) => <RuleSwitch rule={rule} /> },
        ]}
        empty={
          <Empty icon={<ShieldAlert size={22} />} title="No rules yet" action={make}>
            A rule catches words, links or floods, and asks a moderator, hides the text or refuses it.
          </Empty>
        }
      />
    </>
  )
}

const back = { title: 'Moderation rules', to: 'moderation-rules' }

export const New = () => (
  <>
    <PageHead title="New rule" about="It reads what users write from now on" back={back} />
    <div className="card narrow">
      <RuleForm />
    </div>
  </>
)

export const One = () => {
  const { path } = useProject()
  const id = useParam('id')
  const open = useOpen()
  const [isDeleting, setDeleting] = useState(false)
  const { data, error, refetch } = useRules()
  const rule = data?.data.find((one) => one.id === id)
  if (!rule)
    return (
      <>
        <PageHead title="Rule" back={back} />
        {error ? (
          <Failure error={error} onRetry={refetch} />
        ) : data ? (
          <Empty title="It is not here (any more)" />
        ) : (
          <Skeleton h={320} />
        )}
      </>
    )
  return (
    <>
      <PageHead
        title={rule.name}
        about={`${types[rule.rule_type as Type][1]}: ${ruleInWords(rule)}`}
        back={back}
        actions={
          <>
            <RuleSwitch key={String(rule.is_active)} rule={rule} />
            <Button variant="default" c="var(--bad)" onClick={() => setDeleting(true)}>
              Delete
            </Button>
          </>
        }
      />
      <div className="split">
        <div className="card">
          <RuleForm key={rule.updated_at} rule={rule} />
        </div>
        <Try rule={rule} />
      </div>
      <Confirm
        title="Delete rule"
        verb="Delete rule"
        said={`“${rule.name}” is deleted.`}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        run={() => call(deleteModerationRule, { path: { ...path, ruleId: rule.id } })}
        undo={() =>
          call(createModerationRule, {
            path,
            body: {
              name: rule.name,
              rule_type: rule.rule_type as Type,
              config: rule.config,
              is_active: rule.is_active,
            },
          })
        }
        after={() => void open('moderation-rules')}
      >
        It catches nothing any more. What it queued stays in the queue.
      </Confirm>
    </>
  )
}
