import { Button, Menu } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { FlaskConical, Plus } from 'lucide-react'
import { adminListAiPrompts } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { PageHead, ProjectLink, useAddress, useProject } from '../parts/page.tsx'
import { counted, done, Empty, Failure, Rows, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { type Outcome, useEvaluations } from './cases.ts'
import { Evaluation } from './evaluation.tsx'

const Passed = ({ last }: { last: Outcome | null }) =>
  last ? (
    <>
      <Status value={`${last.passed} of ${last.of} passed`} meaning={last.passed === last.of ? 'good' : 'bad'} />
      <span className="cell-sub">
        {last.version !== null && `version ${last.version}, `}
        <When at={last.at} />
      </span>
    </>
  ) : (
    <span className="dimmed">not run yet</span>
  )

/** The prompts that have cases, with what came of their last run. */
const List = () => {
  const { path } = useProject()
  const [, setAddress] = useAddress<'prompt'>()
  const { all, save, remove } = useEvaluations(path.projectId)
  const { data, error, refetch } = useQuery({
    queryKey: ['prompts', path.projectId],
    queryFn: async () => (await call(adminListAiPrompts, { path, query: { limit: 100 } })).data,
  })
  const some = Object.entries(all)
  const make = (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button leftSection={<Plus size={16} />}>New evaluation</Button>
      </Menu.Target>
      <Menu.Dropdown mah={320} className="scroll-y">
        <Menu.Label>Of which prompt</Menu.Label>
        {data?.map(({ name }) => (
          <Menu.Item key={name} onClick={() => setAddress({ prompt: name }, false)}>
            {name}
          </Menu.Item>
        ))}
        {data?.length === 0 && (
          <Menu.Item component={ProjectLink} to="ai/prompts/new">
            Make a prompt first
          </Menu.Item>
        )}
      </Menu.Dropdown>
    </Menu>
  )
  return (
    <>
      <PageHead
        title="Evaluations"
        about="Questions with answers that you expect: whether a prompt still does what it should"
        actions={make}
      />
      {error && <Failure error={error} onRetry={refetch} />}
      {!data && !error && <Rows />}
      {data && some.length === 0 && (
        <div className="card">
          <Empty icon={<FlaskConical size={22} />} title="No evaluations yet" action={make}>
            An evaluation asks a prompt a list of questions and tells which answers are as expected. This browser keeps
            the questions; the calls stand in the log.
          </Empty>
        </div>
      )}
      {data && some.length > 0 && (
        <div className="card" data-flush>
          <table className="table" data-stack aria-label="Evaluations">
            <thead>
              <tr>
                <th scope="col">Prompt</th>
                <th scope="col">Cases</th>
                <th scope="col">Last run</th>
                <th scope="col">Actions</th>
              </tr>
            </thead>
            <tbody>
              {some.map(([name, evaluation]) => {
                const prompt = data.find((one) => one.name === name)
                return (
                  <tr key={name}>
                    <td>
                      <ProjectLink to="ai/evaluations" search={{ prompt: name }}>
                        {name}
                      </ProjectLink>
                      <span className="cell-sub">
                        {prompt ? `version ${prompt.version}, ${prompt.model}` : 'this prompt is gone'}
                      </span>
                    </td>
                    <td data-label="Cases">{counted(evaluation.cases.length, 'case')}</td>
                    <td data-label="Last run">
                      <div>
                        <Passed last={evaluation.last} />
                      </div>
                    </td>
                    <td data-label="Actions">
                      <Button
                        size="compact-xs"
                        variant="default"
                        aria-label={`Remove the evaluation of ${name}`}
                        onClick={() => {
                          remove(name)
                          done(`The cases of ${name} are removed.`, async () => save(name, evaluation))
                        }}
                      >
                        Remove
                      </Button>
                    </td>
                  </tr>
                )
              })}
            </tbody>
          </table>
        </div>
      )}
    </>
  )
}

/** The evaluations of the project's prompts, or the one that the address names. */
export const Page = () => {
  const [{ prompt }] = useAddress<'prompt'>()
  return prompt ? <Evaluation key={prompt} name={prompt} /> : <List />
}
