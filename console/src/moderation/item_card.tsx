import { Alert, Badge, Group, Title } from '@mantine/core'
import type { ReactNode } from 'react'
import { Facts, ProjectLink } from '../parts/page.tsx'
import { counted, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { Subject } from '../parts/subject.tsx'
import { UserName } from '../parts/users.tsx'
import { type Item, isOpen, reasonsOf, spaced, statuses, textOf } from './item.ts'
import { useRules } from './rule_data.ts'

/** The rule that caught an item. */
const RuleName = ({ id }: { id: string }) => {
  const { data } = useRules()
  const rule = data?.data.find((one) => one.id === id)
  if (!rule) return <>caught by a rule</>
  return (
    <>
      caught by <ProjectLink to={`moderation-rules/${id}`}>{rule.name}</ProjectLink>
    </>
  )
}

const Judged = ({ item }: { item: Item }) => (
  <Alert color="gray" mt="md">
    {statuses.find(({ value }) => value === item.status)?.label} {item.resolved_at && <When at={item.resolved_at} />}
    {item.note && `: ${item.note}`}
    <div>This verdict is final.</div>
  </Alert>
)

/** What a review says beside its text. */
const reviewed = ({ snapshot }: Item): readonly (readonly [string, ReactNode])[] => [
  ['Stars', `${snapshot['rating']} of 5`],
  ['Of', <Subject key="of" type={String(snapshot['subject_type'])} id={String(snapshot['subject_id'])} />],
]

/** One item of the queue: what was written, why it is here, and the verdict, or the form for one. */
export const ItemCard = ({ item, children }: { item: Item; children: ReactNode }) => (
  <article className="card" aria-label={spaced(item.subject_type)}>
    <Group justify="space-between" align="flex-start">
      <Title order={2}>{spaced(item.subject_type).replace(/^./, (first) => first.toUpperCase())}</Title>
      <Group gap={6}>
        {item.is_hidden && <Status value="hidden meanwhile" meaning="warn" />}
        <Badge variant="light" color="gray" styles={{ label: { color: 'var(--mantine-color-text)' } }}>
          {item.source === 'rule' ? 'a rule' : counted(item.report_count, 'report')}
        </Badge>
      </Group>
    </Group>
    <blockquote className="said">{textOf(item)}</blockquote>
    <Facts
      facts={[
        ['Why', item.rule_id ? <RuleName key="why" id={item.rule_id} /> : reasonsOf(item)],
        [
          item.subject_type === 'user' ? 'Whose name' : 'By',
          <UserName key="by" id={item.subject_user_id} user={item.user} />,
        ],
        ...(item.subject_type === 'review' ? reviewed(item) : []),
        ['Since', <When key="at" at={item.created_at} />],
        ...(isOpen(item) && item.note ? [['Note', item.note] as const] : []),
      ]}
    />
    {isOpen(item) ? children : <Judged item={item} />}
  </article>
)
