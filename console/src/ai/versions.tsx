import { Button, Text } from '@mantine/core'
import { rollbackAiPrompt } from '../../../sdk/src/generated/admin.ts'
import type { AiPromptVersion } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'
import { useChosen } from '../parts/chosen.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { List } from '../parts/list.tsx'
import { useProject } from '../parts/page.tsx'
import { Empty, When } from '../parts/states.tsx'
import type { Prompt } from './data.ts'

/** Every version of a prompt, each of which can become the next one. */
export const Versions = ({ prompt }: { prompt: Prompt }) => {
  const { path } = useProject()
  const { one: chosen, isOpen, choose, close } = useChosen<AiPromptVersion>()
  const restore = (version: number) =>
    call(rollbackAiPrompt, { path: { ...path, name: prompt.name }, body: { version } })
  return (
    <>
      <List<AiPromptVersion>
        name="Versions"
        operation="GET /v1/admin/projects/{projectId}/ai/prompts/{name}/versions"
        path={{ name: prompt.name }}
        keyOf={({ version }) => String(version)}
        columns={[
          {
            title: 'Version',
            show: ({ version, system_prompt }) => (
              <>
                {version}
                <span className="cell-sub">{system_prompt ?? 'no instructions'}</span>
              </>
            ),
          },
          { title: 'Model', show: ({ model }) => model },
          { title: 'Longest answer', isNumber: true, show: ({ max_tokens }) => `${max_tokens} tokens` },
          { title: 'Saved', show: ({ created_at }) => <When at={created_at} /> },
          {
            title: 'Restore',
            show: (one) =>
              one.version === prompt.version ? (
                <Text size="sm" c="dimmed" component="span">
                  current
                </Text>
              ) : (
                <Button
                  size="compact-xs"
                  variant="default"
                  aria-label={`Restore version ${one.version}`}
                  onClick={() => choose(one)}
                >
                  Restore
                </Button>
              ),
          },
        ]}
        empty={<Empty title="No versions" />}
      />
      <Confirm
        title={`Restore version ${chosen?.version}`}
        verb="Restore"
        said={`The prompt is as in version ${chosen?.version}.`}
        isOpen={isOpen}
        isDangerous={false}
        onClose={close}
        run={() => restore(chosen?.version ?? 0)}
        undo={() => restore(prompt.version)}
      >
        Apps get the former instructions from the next call on:
        <div className="talk-text after">{chosen?.system_prompt ?? 'no instructions'}</div>
      </Confirm>
    </>
  )
}
