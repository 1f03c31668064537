import { useState } from 'preact/hooks'
import { call } from '../api.ts'
import { Refusal } from '../form.tsx'
import { useLoaded } from '../load.ts'
import type { PageProps } from '../page_props.ts'
import { ChoiceField, TextField, timeOf } from '../parts/field.tsx'
import { Table } from '../parts/table.tsx'
import { texts } from '../texts.ts'

type Member = {
  readonly developer_id: string
  readonly email: string
  readonly name: string | null
  readonly role: string
  readonly joined_at: string
}
type Invite = {
  readonly id: string
  readonly email: string
  readonly role: string
  readonly status: string
  readonly expires_at: string
}

const roles = ['viewer', 'developer', 'admin', 'owner']
const base = '/v1/admin/organizations/{orgId}'

const Roles = () => (
  <>
    {roles.map((role) => (
      <option key={role} value={role}>
        {role}
      </option>
    ))}
  </>
)

/** Who works on the project: the members of its organization with their roles, and invites that are out. */
export const Team = ({ projectId }: PageProps) => {
  const project = useLoaded(`project ${projectId}`, async () => {
    const { data } = await call('GET /v1/admin/projects/{projectId}', { path: { projectId } })
    return (data as { organization_id: string }).organization_id
  })
  return (
    <>
      <h1>{texts.team}</h1>
      <Refusal error={project.error} />
      {project.value && <Members orgId={project.value} />}
    </>
  )
}

const Members = ({ orgId }: { orgId: string }) => {
  const path = { orgId }
  const load = async (list: string) => (await call(`GET ${base}/${list}`, { path, query: { limit: 100 } })).data
  const members = useLoaded(`members ${orgId}`, async () => (await load('members')) as readonly Member[])
  const invites = useLoaded(`invites ${orgId}`, async () => (await load('invites')) as readonly Invite[])
  const [email, setEmail] = useState('')
  const [role, setRole] = useState('developer')
  const [failure, setFailure] = useState<unknown>()
  const [said, setSaid] = useState('')
  const act = async (operation: string, input: Parameters<typeof call>[1], done: string) => {
    setFailure(undefined)
    setSaid('')
    try {
      await call(operation, input)
      setSaid(done)
    } catch (reason) {
      setFailure(reason)
    }
    members.again()
    invites.again()
  }
  const invite = (event: Event) => {
    event.preventDefault()
    void act(`POST ${base}/invites`, { path, body: { email, role } }, texts.invited)
  }
  const remove = (developerId: string) => {
    if (confirm(texts.confirmMember))
      void act(`DELETE ${base}/members/{developerId}`, { path: { orgId, developerId } }, texts.done)
  }
  return (
    <>
      <Refusal error={failure ?? members.error} />
      <p role="status">{said}</p>
      <Table label={texts.team} columns={texts.memberColumns}>
        {(members.value ?? []).map((member) => (
          <tr key={member.developer_id}>
            <td>{member.name ?? member.email}</td>
            <td>
              <select
                aria-label={texts.roleOf(member.email)}
                value={member.role}
                onInput={(event) =>
                  act(
                    `PATCH ${base}/members/{developerId}`,
                    { path: { orgId, developerId: member.developer_id }, body: { role: event.currentTarget.value } },
                    texts.saved,
                  )
                }
              >
                <Roles />
              </select>
            </td>
            <td>{timeOf(member.joined_at)}</td>
            <td>
              <button type="button" class="danger" onClick={() => remove(member.developer_id)}>
                {texts.removeMember(member.email)}
              </button>
            </td>
          </tr>
        ))}
      </Table>
      <h2>{texts.invites}</h2>
      {invites.value?.length === 0 && <p>{texts.nothing}</p>}
      <ul>
        {(invites.value ?? []).map((one) => (
          <li key={one.id}>
            {one.email} · {one.role} · {one.status} · {timeOf(one.expires_at)}
          </li>
        ))}
      </ul>
      <form class="row" onSubmit={invite} aria-label={texts.inviteSomebody}>
        <TextField label={texts.email} value={email} onValue={setEmail} isRequired />
        <ChoiceField label={texts.role} value={role} onValue={setRole}>
          <Roles />
        </ChoiceField>
        <button type="submit">{texts.inviteSomebody}</button>
      </form>
    </>
  )
}
