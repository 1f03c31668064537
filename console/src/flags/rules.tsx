import { Alert, Button, Group, Menu, Stack, Text } from '@mantine/core'
import { Plus } from 'lucide-react'
import { ReferenceName } from '../parts/form/reference_input.tsx'
import { More } from '../parts/more.tsx'
import { Card, useAddress } from '../parts/page.tsx'
import { When } from '../parts/states.tsx'
import { audienceOf, type Flag, type Rule, rampOf, rulesOf, useChange, valueWords } from './data.tsx'
import { Percentage } from './percentage.tsx'
import { ElseDrawer, RuleDrawer } from './rule_drawer.tsx'

const Audience = ({ rule }: { rule: Rule }) => {
  if (!rule.segment_id) return <>{audienceOf(rule)}</>
  const { segment_id: _, ...rest } = rule
  const others = audienceOf(rest)
  return (
    <>
      Users in the segment <ReferenceName reference="segment_id" value={rule.segment_id} />
      {others !== 'Everyone' && others.replace(/^Users/, ',')}
    </>
  )
}

const RampState = ({ flag, onStop }: { flag: Flag; onStop: () => void }) => {
  const ramp = rampOf(flag)
  if (!ramp || ramp.status === 'done') return null
  const next = flag.schedule[0]?.at
  if (ramp.status === 'stopped')
    return (
      <Alert color="red" py={8} mt="sm" title="The rise was stopped, and the share set to 0 %">
        {ramp.guardrail &&
          `${Math.round((ramp.rate ?? 0) * 1000) / 10} % of the users who got it had “${ramp.guardrail.event_name}”; at most ${ramp.guardrail.max_rate * 100} % were allowed.`}
      </Alert>
    )
  return (
    <Alert color="leaf" py={8} mt="sm">
      <Group justify="space-between" gap="xs">
        <Text size="sm">
          Rises by {ramp.step} % every {ramp.every_hours} hours, up to {ramp.to} %.{' '}
          {next && (
            <>
              Next step <When at={next} />.
            </>
          )}
          {ramp.guardrail &&
            ` Stops when more than ${ramp.guardrail.max_rate * 100} % have “${ramp.guardrail.event_name}”.`}
        </Text>
        <Button size="compact-xs" variant="default" onClick={onStop}>
          Stop rising
        </Button>
      </Group>
    </Alert>
  )
}

/** The rules of a flag as cards: the first that matches a user decides. */
export const Rules = ({ flag }: { flag: Flag }) => {
  const [{ rule: openRule }, setAddress] = useAddress<'rule' | 'ramp'>()
  const change = useChange(flag)
  const rules = rulesOf(flag)
  const type = flag.value_type
  const fresh: Rule = { value: type === 'boolean' ? true : flag.default_value }
  const at = openRule === undefined || openRule === 'else' ? undefined : Number(openRule)
  const save = (next: readonly Rule[], said: string) => change({ rules: next }, said)
  const replaced = (index: number, rule: Rule) => rules.map((before, n) => (n === index ? rule : before))
  const setShare = (index: number, rule: Rule, percentage: number) =>
    save(
      replaced(index, { ...rule, percentage }),
      `${percentage} % of the users of rule ${index + 1} get ${valueWords(rule.value)}.`,
    )
  const moved = (index: number, by: number) => {
    const next = [...rules]
    const [one] = next.splice(index, 1)
    if (one) next.splice(index + by, 0, one)
    return next
  }
  const ramp = rampOf(flag)
  return (
    <Stack gap="sm">
      {!flag.is_enabled && (
        <Alert color="gray" py={10}>
          The flag is off: everyone gets {valueWords(flag.off_value)}, whatever the rules say.
        </Alert>
      )}
      {rules.map((rule, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the place of a rule is what it is known by
        <section className="card" key={index} aria-label={`Rule ${index + 1}`}>
          <Group justify="space-between" wrap="nowrap" align="flex-start" mb="sm">
            <div>
              <Text size="xs" c="dimmed">
                Rule {index + 1}
              </Text>
              <Text fw={600}>
                <Audience rule={rule} />
              </Text>
              <Text size="sm">get {valueWords(rule.value)}</Text>
            </div>
            <Group gap={4} wrap="nowrap">
              <Button
                size="compact-sm"
                variant="default"
                onClick={() => setAddress({ rule: String(index) }, false)}
                aria-label={`Edit rule ${index + 1}`}
              >
                Edit
              </Button>
              <More label={`More about rule ${index + 1}`} isSmall>
                <Menu.Item disabled={index === 0} onClick={() => save(moved(index, -1), 'The rule comes earlier.')}>
                  Move up
                </Menu.Item>
                <Menu.Item
                  disabled={index === rules.length - 1}
                  onClick={() => save(moved(index, 1), 'The rule comes later.')}
                >
                  Move down
                </Menu.Item>
                <Menu.Item
                  c="var(--bad)"
                  onClick={() =>
                    save(
                      rules.filter((_, n) => n !== index),
                      `Rule ${index + 1} is removed.`,
                    )
                  }
                >
                  Remove rule
                </Menu.Item>
              </More>
            </Group>
          </Group>
          <Percentage
            label={`Share of rule ${index + 1}`}
            value={rule.percentage ?? 100}
            onCommit={(percentage) => setShare(index, rule, percentage)}
          />
          {ramp?.rule_index === index && (
            <RampState flag={flag} onStop={() => change({ schedule: [] }, 'The share stays as it is.')} />
          )}
        </section>
      ))}
      {rules.length === 0 && type === 'boolean' && (
        <Card title="Everyone">
          <Text size="sm" c="dimmed" mb="sm">
            {flag.default_value === true ? 'Everyone has it already.' : 'Nobody has it yet. Give it to some first:'}
          </Text>
          <Percentage
            value={flag.default_value === true ? 100 : 0}
            onCommit={(percentage) =>
              change(
                { rules: [{ value: true, percentage }], default_value: false },
                `${percentage} % of all users get on.`,
              )
            }
          />
        </Card>
      )}
      <Group justify="space-between">
        <Button
          variant="default"
          leftSection={<Plus size={16} />}
          onClick={() => setAddress({ rule: String(rules.length) }, false)}
        >
          Add rule
        </Button>
        <Text size="sm" c="dimmed">
          The first rule that matches decides
        </Text>
      </Group>
      <section className="card" aria-label="Everyone else">
        <Group justify="space-between" wrap="nowrap">
          <div>
            <Text fw={600}>Everyone else</Text>
            <Text size="sm">
              get {valueWords(flag.default_value)}; while the flag is off, everyone gets {valueWords(flag.off_value)}
            </Text>
          </div>
          <Button
            size="compact-sm"
            variant="default"
            flex="none"
            aria-label="Edit what everyone else gets"
            onClick={() => setAddress({ rule: 'else' }, false)}
          >
            Edit
          </Button>
        </Group>
      </section>
      <ElseDrawer
        flag={flag}
        isOpen={openRule === 'else'}
        onClose={() => setAddress({ rule: undefined })}
        onSave={(values) => {
          void setAddress({ rule: undefined })
          void change(values, 'Saved.')
        }}
      />
      <RuleDrawer
        rule={at === undefined ? undefined : (rules[at] ?? fresh)}
        title={at !== undefined && at < rules.length ? `Rule ${at + 1}` : 'New rule'}
        type={type}
        onClose={() => setAddress({ rule: undefined })}
        onSave={(rule) => {
          void setAddress({ rule: undefined })
          if (at === undefined) return
          void save(
            at < rules.length ? replaced(at, rule) : [...rules, rule],
            at < rules.length ? 'The rule is saved.' : 'The rule is added.',
          )
        }}
      />
    </Stack>
  )
}
