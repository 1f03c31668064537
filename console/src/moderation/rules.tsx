import { Button } from '@mantine/core'
import { Plus, ShieldAlert } from 'lucide-react'
import type { ModerationRule } from '../../../sdk/src/generated/schemas.ts'
import type { Row } from '../api.ts'
import { List } from '../parts/list.tsx'
import { PageHead, ProjectLink, useOpen } from '../parts/page.tsx'
import { Empty, When } from '../parts/states.tsx'
import { RuleSwitch } from './rule_switch.tsx'
import { actionWords, placeWords, ruleInWords, type Type, types } from './rule_words.ts'

/** The rules of the project. */
export const Page = () => {
  const open = useOpen()
  const make = (
    <Button leftSection={<Plus size={16} />} onClick={() => open('moderation-rules/new')}>
      New rule
    </Button>
  )
  return (
    <>
      <PageHead title="Moderation rules" about="They read what users write, before others do" actions={make} />
      <List<ModerationRule>
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
