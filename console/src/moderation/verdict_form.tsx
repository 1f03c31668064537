import { Button, Group, Select, Stack, Text, Textarea } from '@mantine/core'
import { canEscalate, type Item, meaningOf } from './item.ts'
import { type Action, type Draft, grace, type Verdict } from './verdicts.ts'

const actions = [
  { value: 'none', label: 'Only remove it' },
  { value: 'warn', label: 'and warn the author' },
  { value: 'mute_24h', label: 'and mute for a day' },
  { value: 'ban', label: 'and ban the author' },
]

/** A verdict on an open item, with a note and what else happens to the author. */
export const VerdictForm = ({
  item,
  draft,
  onDraft,
  onJudge,
}: {
  item: Item
  draft: Draft
  onDraft: (next: Draft) => void
  onJudge: (verdict: Verdict) => void
}) => (
  <Stack gap="sm" mt="md">
    <Textarea
      aria-label="Note"
      placeholder="Note for your team"
      rows={2}
      value={draft.note}
      maxLength={2000}
      onChange={(event) => onDraft({ ...draft, note: event.currentTarget.value })}
    />
    <Group gap="xs">
      <Button variant="default" onClick={() => onJudge('approve')} aria-keyshortcuts="a">
        Approve
      </Button>
      <Button color="red.8" onClick={() => onJudge('reject')} aria-keyshortcuts="r">
        Reject
      </Button>
      <Select
        aria-label="What else"
        data={actions}
        value={draft.action}
        allowDeselect={false}
        onChange={(next) => onDraft({ ...draft, action: (next ?? 'none') as Action })}
        w={190}
      />
      {canEscalate(item) && (
        <Button variant="subtle" color="gray" onClick={() => onJudge('escalate')} aria-keyshortcuts="e">
          Escalate
        </Button>
      )}
    </Group>
    <Text size="xs" c="dimmed">
      {meaningOf(item)} You have {grace} seconds to take a verdict back. Then it is final; only a ban or a mute of the
      author can be lifted, on the page of the user.
    </Text>
  </Stack>
)
